// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

#include "transport/net/file_descriptor.h"
#include "transport/net/net.h"

namespace millrace {

// Whether the other end of a stream socket, or its output, is not closed, as far as is known here.
bool is_connected(int socket);

// Whether it is a Unix socket: TCP may lead to another machine.
bool is_local(int socket);

// A pidfd of the process that connected a Unix socket, which becomes readable when it is gone.
// Nothing where there is none to be had: it is gone already, or lives in another PID namespace of
// a kernel before 6.5.
FileDescriptor pidfd_of_peer(int socket);

// The same by the number of the process, as kernels before 6.5 give it.
FileDescriptor pidfd_by_number(int socket);

// The process at the other end of a Unix socket, to be seen gone. Without a pidfd that is when all
// who have the other end have closed it.
//
// Confined to the thread of its executor.
class PeerProcess {
 public:
  // The socket is connected and stays the caller's, who may close it but does not shut down its
  // input. Throws std::system_error where descriptors are short.
  PeerProcess(Executor executor, FileDescriptor pidfd, int socket);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Calls `gone` once, later, on the executor's thread. Nothing is called when this is destroyed
  // first, which `gone` may do. May be called several times.
  void when_gone(std::function<void()> gone);

  // Whether other connections of this process can be watched by it, too: it has a pidfd, and the
  // process has not ended.
  bool can_be_shared() const;

 private:
  bool by_hang_up_;
  FileDescriptor watched_;
  net::posix::basic_stream_descriptor<Executor> waits_;
};

// The processes at the other ends of Unix sockets. Connections of one process share a PeerProcess,
// and with it a descriptor, for as long as one of them has it.
//
// Confined to one thread.
class PeerProcesses {
 public:
  // Null for a TCP connection. Throws as PeerProcess does.
  std::shared_ptr<PeerProcess> at_other_end_of(int socket, const Executor& executor);

 private:
  std::unordered_map<int, std::weak_ptr<PeerProcess>> by_number_;
};

}  // namespace millrace
