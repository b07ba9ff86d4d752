// SPDX-License-Identifier: Apache-2.0
#include "workers/peer_process.h"

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

}  // namespace

bool is_connected(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) == 0;
}

FileDescriptor pidfd_of_peer(int socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, peer_pidfd, &pidfd, &size) == 0)
    return FileDescriptor(pidfd);
  return pidfd_by_number(socket);
}

FileDescriptor pidfd_by_number(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return FileDescriptor();
  // Not by its function, which glibc 2.36 declares for C only.
  FileDescriptor opened(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
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

}  // namespace millrace
