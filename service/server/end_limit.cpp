// SPDX-License-Identifier: Apache-2.0
#include "service/server/end_limit.h"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string_view>

namespace millrace {

namespace {

// A signal handler: calls only async-signal-safe functions.
void end_process(int) {
  constexpr std::string_view line =
      "millrace: a thread did not end, probably in a call of a driver; the process exits without "
      "it\n";
  pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&output, 1, 100) == 1) {  // a full pipe would block
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  }
  ::_exit(1);
}

void set_timer(std::chrono::microseconds left) {
  itimerval timer{};
  timer.it_value.tv_sec = left.count() / 1'000'000;
  timer.it_value.tv_usec = left.count() % 1'000'000;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

EndLimit::~EndLimit() {
  if (started_) set_timer({});
}

void EndLimit::start(Duration time_left) {
  started_ = true;
  std::signal(SIGALRM, end_process);
  set_timer(std::chrono::duration_cast<std::chrono::microseconds>(time_left));
}

}  // namespace millrace
