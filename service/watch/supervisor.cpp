// SPDX-License-Identifier: Apache-2.0
#include "service/watch/supervisor.h"

#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace millrace {

namespace {

// The result is ignored: the process also works without a supervisor.
void notify(const std::string& state) { (void)::sd_notify(0, state.c_str()); }

std::string with_status(const char* state, std::string_view status) {
  return std::string(state) + "\nSTATUS=" + std::string(status);
}

}  // namespace

void Supervisor::ready(std::string_view status) const { notify(with_status("READY=1", status)); }

// Requires: Clock is CLOCK_MONOTONIC.
void Supervisor::reloading() const {
  const auto now = Clock::now().time_since_epoch();
  notify("RELOADING=1\nMONOTONIC_USEC=" +
         std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
}

void Supervisor::stopping(std::string_view status) const {
  notify(with_status("STOPPING=1", status));
}

void Supervisor::alive() const { notify("WATCHDOG=1"); }

std::optional<Duration> Supervisor::watchdog() {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

}  // namespace millrace
