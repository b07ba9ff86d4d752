// SPDX-License-Identifier: Apache-2.0
#include "load/streams/usage.h"

#include <time.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace millrace::load {

namespace {

Duration read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

std::optional<std::size_t> own_bytes(const std::string& process) {
  std::ifstream status(process + "/status");
  for (std::string key; status >> key; status.ignore(256, '\n')) {
    std::size_t kibibytes = 0;
    if (key == "RssAnon:" && status >> kibibytes) return kibibytes << 10;
  }
  return std::nullopt;
}

}  // namespace

Duration cpu_of_thread(pthread_t thread) {
  clockid_t clock{};
  return ::pthread_getcpuclockid(thread, &clock) == 0 ? read(clock) : Duration{};
}

Duration cpu_of_us() { return read(CLOCK_PROCESS_CPUTIME_ID); }

std::optional<Usage> usage_of(pid_t process) {
  const std::string directory = "/proc/" + std::to_string(process);
  clockid_t clock{};
  const auto bytes = own_bytes(directory);
  if (!bytes || ::clock_getcpuclockid(process, &clock) != 0) return std::nullopt;
  std::error_code forbidden;
  const auto all = std::filesystem::directory_iterator(directory + "/fd", forbidden);
  return Usage{.cpu = read(clock),
               .bytes = *bytes,
               .descriptors = static_cast<std::size_t>(std::distance(begin(all), end(all)))};
}

}  // namespace millrace::load
