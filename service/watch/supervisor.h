// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"

namespace millrace {

// Reports the state of this process to its supervisor, by the protocol of systemd (sd_notify(3)).
// Without NOTIFY_SOCKET in the environment, nothing is sent. Confined to one thread.
class Supervisor {
 public:
  // `status` is a sentence for people. ready() also says that a reload is over.
  void ready(std::string_view status) const;
  void reloading() const;
  void stopping(std::string_view status) const;
  // The process works. If there is a watchdog(), call it more often than that.
  void alive() const;
  // The time without alive() after which the process is killed.
  static std::optional<Duration> watchdog();
};

}  // namespace millrace
