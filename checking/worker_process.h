// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace millrace::checking {

// A process of the user's command, with its children: a process group. It reads nothing, and
// what it prints goes to standard error. Confined to one thread.
class WorkerProcess {
 public:
  // Starts the command. It finds the service by $MILLRACE_WORKERS, which is `address`. Throws
  // std::runtime_error that names the command if it cannot be started.
  WorkerProcess(const std::vector<std::string>& command, const std::string& address);
  // Kills the process group if it has not ended.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // How the process ended, as in "ended with exit code 1"; nullopt while it runs.
  const std::optional<std::string>& ended();
  // Sends the signal to the process and its children, if it has not ended.
  void signal(int number);

 private:
  pid_t pid_ = 0;
  std::optional<std::string> ended_;
};

}  // namespace millrace::checking
