// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/simulated/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace millrace::test {

namespace {

std::array<int, 2> pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return ends;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Program::Program(const std::string& name, const std::vector<std::string>& environment,
                 const std::vector<std::string>& arguments) {
  std::vector<std::string> variables = environment;
  for (char** variable = ::environ; *variable; ++variable) variables.emplace_back(*variable);
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());

  const auto [reads, writes] = pipe();
  const auto [answers, answering] = pipe();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, reads, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, answering, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = ::posix_spawn(&process_, path.c_str(), &actions, nullptr,
                                   pointers(words).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(reads);
  ::close(answering);
  input_ = writes;
  output_ = answers;
  if (failed != 0) throw std::runtime_error("cannot start " + path.string());
}

Program::~Program() {
  kill();
  if (input_ >= 0) ::close(input_);
  ::close(output_);
}

std::string Program::ask(const std::string& line) {
  const std::string all = line + '\n';
  if (::write(input_, all.data(), all.size()) < 0) return {};
  std::string answer;
  for (char letter = 0; ::read(output_, &letter, 1) == 1 && letter != '\n';) answer += letter;
  return answer;
}

void Program::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  (void)end();
}

int Program::end() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
  int status = 0;
  ::waitpid(std::exchange(process_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace millrace::test
