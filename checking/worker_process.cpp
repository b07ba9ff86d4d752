// SPDX-License-Identifier: Apache-2.0
#include "checking/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace millrace::checking {
namespace {

// The arguments of posix_spawn: they are freed at the end.
class SpawnRules {
 public:
  SpawnRules() {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnRules() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnRules(const SpawnRules&) = delete;
  SpawnRules& operator=(const SpawnRules&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, const std::string& address) {
  constexpr std::string_view name = "MILLRACE_WORKERS=";
  std::vector<std::string> arguments = command, variables{std::string(name) + address};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with(name)) variables.emplace_back(*variable);
  const SpawnRules rules;
  const int error =
      ::posix_spawnp(&pid_, arguments.front().c_str(), &rules.files, &rules.attributes,
                     pointers(arguments).data(), pointers(variables).data());
  if (error != 0)
    throw std::runtime_error(arguments.front() + ": cannot be run: " + std::strerror(error));
}

// The group is killed also after its first process has ended: a child may be left. Until then the
// process is not reaped, so that no other process gets its id.
WorkerProcess::~WorkerProcess() {
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

const std::optional<std::string>& WorkerProcess::ended() {
  siginfo_t how{};
  if (!ended_ && ::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      how.si_pid == pid_)
    ended_ = (how.si_code == CLD_EXITED ? "ended with exit code " : "was ended by signal ") +
             std::to_string(how.si_status);
  return ended_;
}

void WorkerProcess::signal(int number) {
  if (!ended()) ::kill(-pid_, number);
}

}  // namespace millrace::checking
