// SPDX-License-Identifier: Apache-2.0
// A separate file: the kernel's tcp_info, which has more members than that of the C library, cannot
// be included together with it.
#include "transport/net/acknowledged.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace millrace {

std::uint64_t acknowledged_bytes(int socket) {
  tcp_info state{};
  socklen_t size = sizeof state;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 ? state.tcpi_bytes_acked
                                                                         : 0;
}

}  // namespace millrace
