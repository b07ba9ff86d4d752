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

// SO_PEERPIDFD of Linux 6.5. Older headers do not define it.
constexpr int peer_pidfd = 77;

FileDescriptor duplicate(int socket) {
  FileDescriptor copy(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw std::system_error(errno, std::generic_category(), "cannot watch the process");
  return copy;
}

// The id of the process that connected; 0 if its PID namespace is not visible to this process.
int pid_of_peer(int socket) {
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
  return pidfd_by_pid(socket);
}

FileDescriptor pidfd_by_pid(int socket) {
  const int pid = pid_of_peer(socket);
  if (pid <= 0) return FileDescriptor();
  // glibc 2.36 declares pidfd_open() for C only.
  FileDescriptor opened(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // If the peer has closed the connection, it may have ended, and another process may have its id.
  if (!is_connected(socket)) return FileDescriptor();
  return opened;
}

PeerProcess::PeerProcess(Executor executor, FileDescriptor pidfd, int socket)
    : by_hangup_(!pidfd),
      watched_(by_hangup_ ? duplicate(socket) : std::move(pidfd)),
      waits_(executor, watched_.get()) {}

PeerProcess::~PeerProcess() { waits_.release(); }

void PeerProcess::when_ended(std::function<void()> ended) {
  using Wait = net::posix::descriptor_base;
  const auto event = by_hangup_ ? Wait::wait_error : Wait::wait_read;
  waits_.async_wait(event, [ended = std::move(ended)](boost::system::error_code cancelled) {
    if (!cancelled) ended();
  });
}

// A process id is not reused before the process has ended.
bool PeerProcess::can_be_shared() const {
  pollfd ended{watched_.get(), POLLIN, 0};
  return !by_hangup_ && ::poll(&ended, 1, 0) == 0;
}

std::shared_ptr<PeerProcess> PeerProcesses::peer_of(int socket, const Executor& executor) {
  if (!is_local(socket)) return nullptr;
  const int pid = pid_of_peer(socket);
  if (const auto known = by_pid_.find(pid); known != by_pid_.end())
    if (auto process = known->second.lock(); process && process->can_be_shared()) return process;
  std::erase_if(by_pid_, [](const auto& known) { return known.second.expired(); });
  auto process = std::make_shared<PeerProcess>(executor, pidfd_of_peer(socket), socket);
  if (pid > 0 && process->can_be_shared()) by_pid_[pid] = process;
  return process;
}

}  // namespace millrace
