// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>

#include "transport/file_descriptor.h"
#include "transport/net.h"

namespace millrace {

// Whether nobody has closed the other end of a Unix socket, or its output.
bool is_connected(int socket);

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
  // first, which `gone` may do.
  void when_gone(std::function<void()> gone);

 private:
  bool by_hang_up_;
  FileDescriptor watched_;
  net::posix::basic_stream_descriptor<Executor> waits_;
};

}  // namespace millrace
