// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "monitoring/collect.h"
#include "monitoring/open_files.h"

namespace millrace {

namespace {

// The fields of /proc/self/stat after the program's name, which may contain spaces and brackets.
// Field n of proc(5) is at index n - 3.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;)
    if (word == "btime") {
      double at = 0;
      file >> at;
      return at;
    }
  return 0;
}

}  // namespace

void collect_process(Families& into) {
  const auto fields = stat_fields();
  const auto field = [&](std::size_t number) {
    return fields.size() > number - 3 ? std::stod(fields[number - 3]) : 0;
  };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);

  into.begin_counter("process_cpu_seconds_total", "User and system CPU time spent.");
  into.add({}, (field(14) + field(15)) / ticks);
  into.begin_gauge("process_resident_memory_bytes", "Resident memory.");
  into.add({}, field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  into.begin_gauge("process_open_fds", "Open file descriptors.");
  into.add({}, static_cast<double>(open_files()));
  into.begin_gauge("process_max_fds", "Limit of open file descriptors.");
  into.add({}, static_cast<double>(files.rlim_cur));
  into.begin_gauge("process_start_time_seconds", "Start time of the process, Unix time.");
  into.add({}, boot_time() + field(22) / ticks);
  into.begin_gauge("process_threads", "Threads.");
  into.add({}, field(20));
}

}  // namespace millrace
