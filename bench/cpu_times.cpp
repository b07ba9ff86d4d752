// SPDX-License-Identifier: Apache-2.0
#include "bench/cpu_times.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace millrace::bench {

namespace {

Duration ticks(long long count) {
  return Duration(std::chrono::seconds(1)) * count / ::sysconf(_SC_CLK_TCK);
}

Duration own(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

// Fields 14 and 15 of /proc/PID/stat; the second field ends with the last ')'.
Duration of_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string skipped;
  for (int field = 3; field < 14; ++field) file >> skipped;
  long long user = 0, system = 0;
  if (!(file >> user >> system)) throw std::runtime_error("the service is gone");
  return ticks(user + system);
}

// user nice system (idle iowait) irq softirq steal
Duration of_machine() {
  std::ifstream file("/proc/stat");
  std::string name;
  long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return ticks(user + nice + system + irq + softirq + steal);
}

}  // namespace

CpuTimes CpuTimes::operator-(const CpuTimes& before) const {
  return {process - before.process, thread - before.thread, rest - before.rest,
          machine - before.machine};
}

CpuTimes cpu_times(pid_t service) {
  const Duration thread = own(CLOCK_THREAD_CPUTIME_ID);
  return {of_process(service), thread, own(CLOCK_PROCESS_CPUTIME_ID) - thread, of_machine()};
}

}  // namespace millrace::bench
