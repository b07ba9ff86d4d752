// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace millrace {

namespace {

// SO_PEERPIDFD of Linux 6.5, which older headers do not name.
constexpr int peer_pidfd = 77;

FileDescriptor duplicate(int socket) {
  FileDescriptor copy(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw std::system_error(errno, std::generic_category(), "cannot watch the process");
  return copy;
}

// Of the process that connected; 0 if it is in a PID namespace that this process does not see.
int number_of_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace

bool is_connected(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) == 0;
}

bool is_local(int socket) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

FileDescriptor pidfd_of_peer(int socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, peer_pidfd, &pidfd, &size) == 0)
    return FileDescriptor(pidfd);
  return pidfd_by_number(socket);
}

FileDescriptor pidfd_by_number(int socket) {
  const int number = number_of_peer(socket);
  if (number <= 0) return FileDescriptor();
  // Not by its function, which glibc 2.36 declares for C only.
  FileDescriptor opened(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  // Its number may be another's by now, but not while it holds the connection.
  if (!is_connected(socket)) return FileDescriptor();
  return opened;
}

PeerProcess::PeerProcess(Executor executor, FileDescriptor pidfd, int socket)
    : by_hang_up_(!pidfd),
      watched_(by_hang_up_ ? duplicate(socket) : std::move(pidfd)),
      waits_(executor, watched_.get()) {}

PeerProcess::~PeerProcess() { waits_.release(); }

void PeerProcess::when_gone(std::function<void()> gone) {
  using Wait = net::posix::descriptor_base;
  const auto what = by_hang_up_ ? Wait::wait_error : Wait::wait_read;
  waits_.async_wait(what, [gone = std::move(gone)](boost::system::error_code cancelled) {
    if (!cancelled) gone();
  });
}

// The number of a process is not given to another before it has ended.
bool PeerProcess::can_be_shared() const {
  pollfd ended{watched_.get(), POLLIN, 0};
  return !by_hang_up_ && ::poll(&ended, 1, 0) == 0;
}

std::shared_ptr<PeerProcess> PeerProcesses::at_other_end_of(int socket, const Executor& executor) {
  if (!is_local(socket)) return nullptr;
  const int number = number_of_peer(socket);
  if (const auto known = by_number_.find(number); known != by_number_.end())
    if (auto process = known->second.lock(); process && process->can_be_shared()) return process;
  std::erase_if(by_number_, [](const auto& known) { return known.second.expired(); });
  auto process = std::make_shared<PeerProcess>(executor, pidfd_of_peer(socket), socket);
  if (number > 0 && process->can_be_shared()) by_number_[number] = process;
  return process;
}

}  // namespace millrace
