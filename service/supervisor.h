// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"

namespace millrace {

// Tells the process that started this one what it does, by the protocol of systemd (sd_notify(3)).
// If the environment has no NOTIFY_SOCKET, nothing is sent. Confined to one thread.
class Supervisor {
 public:
  // `status` is a sentence for people. ready() also says that a reload is over.
  void ready(std::string_view status) const;
  void reloading() const;
  void stopping(std::string_view status) const;
  // The process works. To be called more often than every watchdog(); without one, never.
  void alive() const;
  // The time without alive() after which the process is killed.
  static std::optional<Duration> watchdog();
};

}  // namespace millrace
