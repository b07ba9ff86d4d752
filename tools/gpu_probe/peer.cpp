// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace millrace::probe {

namespace {

std::array<int, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error("no socket pair");
  return ends;
}

// Lacks the last word, the number of the socket.
std::vector<std::string> command_of(const std::string& role, std::vector<std::string> launcher) {
  // /proc/self/exe would be the launcher in its process.
  launcher.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  launcher.insert(launcher.end(), {"--peer", role, "--socket"});
  return launcher;
}

}  // namespace

Channel::~Channel() { ::close(descriptor_); }

void Channel::write(const void* from, std::size_t bytes) {
  if (::send(descriptor_, from, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
    throw std::runtime_error("the other process has ended");
}

void Channel::read(void* to, std::size_t bytes) {
  if (::recv(descriptor_, to, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
    throw std::runtime_error("the other process has ended");
}

bool Channel::has_message() const {
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

Peer::Peer(const std::string& role, std::vector<std::string> launcher)
    : Peer(command_of(role, std::move(launcher)), socket_pair()) {}

Peer::Peer(std::vector<std::string> command, std::array<int, 2> ends) : channel_(ends[0]) {
  const int theirs = ends[1];
  (void)::fcntl(theirs, F_SETFD, 0);  // inherited by the other process
  command.push_back(std::to_string(theirs));
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed =
      ::posix_spawnp(&process_, arguments.front(), nullptr, nullptr, arguments.data(), ::environ);
  ::close(theirs);
  if (failed != 0) throw std::runtime_error("cannot start the other process");
}

void Peer::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  wait();
}

void Peer::wait() { ::waitpid(std::exchange(process_, -1), nullptr, 0); }

Exported::Exported(std::size_t bytes, std::size_t count)
    : pages(SharedMemory::create(bytes)),
      locked(cuda::lock_pages(pages.bytes())),
      memory(cuda::allocate(bytes)) {
  for (std::size_t i = 0; i < count; ++i)
    events.push_back(cuda::make_event(cudaEventDisableTiming | cudaEventInterprocess));
}

void Exported::send(Channel& channel) const {
  cudaIpcMemHandle_t of_memory;
  cuda::check(cudaIpcGetMemHandle(&of_memory, memory.get()), "sharing memory");
  channel.send(of_memory);
  channel.send(static_cast<std::uint32_t>(events.size()));
  for (const cuda::Event& event : events) {
    cudaIpcEventHandle_t of_event;
    cuda::check(cudaIpcGetEventHandle(&of_event, event.get()), "sharing an event");
    channel.send(of_event);
  }
}

Opened::Opened(Channel& channel) {
  void* opened = nullptr;
  cuda::check(cudaIpcOpenMemHandle(&opened, channel.receive<cudaIpcMemHandle_t>(),
                                   cudaIpcMemLazyEnablePeerAccess),
              "opening memory");
  memory.reset(static_cast<std::byte*>(opened));
  for (auto left = channel.receive<std::uint32_t>(); left > 0; --left) {
    cudaEvent_t event = nullptr;
    cuda::check(cudaIpcOpenEventHandle(&event, channel.receive<cudaIpcEventHandle_t>()),
                "opening an event");
    events.emplace_back(event);
  }
}

}  // namespace millrace::probe
