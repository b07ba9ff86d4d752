// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"

namespace millrace {

// Reports the state of this process to its supervisor, with the protocol of systemd (sd_notify(3)).
// Without NOTIFY_SOCKET in the environment, it sends no message. Confined to one thread.
class Supervisor {
 public:
  // `status` is a sentence for people. ready() also reports the end of a reload.
  void ready(std::string_view status) const;
  void reloading() const;
  void stopping(std::string_view status) const;
  // Reports that the process works. If watchdog() has a value, call it more often than that.
  void alive() const;
  // The time without alive() after which the supervisor kills the process; nullopt: it does not.
  static std::optional<Duration> watchdog();
};

}  // namespace millrace
