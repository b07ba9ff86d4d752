// SPDX-License-Identifier: Apache-2.0
#include "bench/service_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace millrace::bench {

namespace {

// False at the end of the file.
bool read_line(std::FILE* file, std::string& line) {
  line.clear();
  for (int c = 0; (c = std::fgetc(file)) != EOF && c != '\n';) line += static_cast<char>(c);
  return !line.empty() || !std::feof(file);
}

}  // namespace

// Delegates, so that one that does not start is cleaned up after by the destructor.
ServiceProcess::ServiceProcess(const std::filesystem::path& program, const std::string& pipelines)
    : ServiceProcess() {
  start(program, write_configuration(pipelines));
  await_listening();
  // A full pipe would hold up the service's log.
  log_reader_ = std::jthread([log = log_] {
    std::string line;
    while (read_line(log, line)) {
    }
  });
}

ServiceProcess::~ServiceProcess() {
  stop();
  if (log_reader_.joinable()) log_reader_.join();
  if (log_) std::fclose(log_);
}

void ServiceProcess::stop() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string ServiceProcess::write_configuration(const std::string& pipelines) const {
  const std::string path = directory_ / "millrace.toml";
  std::ofstream file(path);
  file << "[listen]\nwebsocket = \"127.0.0.1:0\"\nzeromq = \"tcp://127.0.0.1:0\"\nadmin = "
          "\"127.0.0.1:0\"\nworkers = \""
       << workers() << "\"\n"
       << pipelines;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
  return path;
}

void ServiceProcess::start(const std::filesystem::path& program, const std::string& configuration) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(pipe[1], STDERR_FILENO);
    ::execl(program.c_str(), "millrace", "serve", "--config", configuration.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(pipe[1]);
  log_ = ::fdopen(pipe[0], "r");
  if (pid_ < 0 || !log_) throw std::runtime_error("no process for " + program.string());
}

// It says "… websocket=127.0.0.1:40123 …" once it listens.
void ServiceProcess::await_listening() {
  constexpr std::string_view key = "websocket=";
  std::string line, last;
  while (read_line(log_, line)) {
    const auto found = line.find(key);
    if (found != std::string::npos) {
      const auto begin = found + key.size();
      const std::string address = line.substr(begin, line.find_first_of(" \"", begin) - begin);
      if (const auto url = parse_service_url("ws://" + address)) {
        clients_ = *url;
        return;
      }
    }
    if (!line.empty()) last = line;
  }
  throw std::runtime_error("the service did not start: " + last);
}

}  // namespace millrace::bench
