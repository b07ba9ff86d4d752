// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "transport/http_message.h"
#include "transport/net.h"

namespace millrace {

enum class HttpFault : std::uint8_t {
  malformed,  // not HTTP, or with a body
  too_long,   // more header than max_header_bytes or max_header_fields
  gone,       // the connection ended: nobody to answer
};

// Reads the header of one request. What was read beyond it is appended to `rest`. Time limits are
// the caller's: closing the socket ends it. `socket` and `rest` outlive it.
Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest);

// Writes it with "Connection: close", then waits, not for long, until the peer has read it: its
// bytes that we never read would make the kernel throw the answer away.
Task<> answer_and_close(Socket& socket, HttpAnswer answer);

// What a request that could not be read is answered; `fault` is not `gone`.
HttpAnswer answer_to(HttpFault fault);

}  // namespace millrace
