// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/file_descriptor.h"
#include "transport/net/net.h"

namespace millrace {

// False if the peer of a stream socket is known to have closed its end, or its sending direction.
bool is_connected(int socket);

// True for a Unix socket. The peer of a TCP socket may be on another machine.
bool is_local(int socket);

// A pidfd of the process that connected a Unix socket. It becomes readable when the process ends.
// Empty if the process has ended already, or if it is in another PID namespace and the kernel is
// older than 6.5.
FileDescriptor pidfd_of_peer(int socket);

// The same by the process id, for kernels before 6.5.
FileDescriptor pidfd_by_pid(int socket);

// Reports the end of the process at the other end of a Unix socket. Without a pidfd it reports when
// every process that has the other end has closed it.
//
// Confined to the thread of its executor.
class PeerProcess {
 public:
  // `pidfd` may be empty. `socket` must be connected; the caller keeps it and may close it, but
  // must not shut down its input. Throws std::system_error if the process has no free descriptors.
  PeerProcess(Executor executor, FileDescriptor pidfd, int socket);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Calls `ended` once, on the executor's thread and never within this call, when the process has
  // ended. Not called if this object is destroyed first; `ended` may destroy it. when_ended() may
  // be called several times.
  void when_ended(std::function<void()> ended);

  // True if it can serve for other connections of the process: it has a pidfd, and the process has
  // not ended.
  bool can_be_shared() const;

 private:
  bool by_hangup_;
  FileDescriptor watched_;
  net::posix::basic_stream_descriptor<Executor> waits_;
};

// The processes at the other ends of Unix sockets. Connections of the same process share one
// PeerProcess and so one descriptor, as long as one of them keeps it.
//
// Confined to one thread.
class PeerProcesses {
 public:
  // The process at the other end of a socket; null for TCP. Throws as PeerProcess does.
  std::shared_ptr<PeerProcess> peer_of(int socket, const Executor& executor);

 private:
  std::unordered_map<int, std::weak_ptr<PeerProcess>> by_pid_;
};

}  // namespace millrace
