// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "transport/http_message.h"
#include "transport/net.h"

namespace millrace {

// Reads the header of one request. What was read beyond it is appended to `rest`. Time limits are
// the caller's: closing the socket ends it. `socket` and `rest` outlive it.
Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest);

// Writes it with "Connection: close", then waits, not for long, until the peer has read it: its
// bytes that we never read would make the kernel throw the answer away.
Task<> answer_and_close(Socket& socket, HttpAnswer answer);

// Writes it without waiting and hangs up: for a client whose request will not be read. The answer
// is lost if the client's request comes later than that.
void answer_at_once(Socket& socket, HttpAnswer answer);

}  // namespace millrace
