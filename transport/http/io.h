// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "transport/http/message.h"
#include "transport/net/net.h"

namespace millrace {

// Reads the header of one request. What was read beyond it is appended to `rest`. Time limits are
// the caller's: closing the socket ends it. `socket` and `rest` outlive it.
Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest);

// Writes it with "Connection: close". Returns without an error if the peer has gone.
Task<> write_answer(Socket& socket, HttpAnswer answer);

// Waits until the peer hangs up, and reads what it still sends, at most 64 KiB: the kernel throws
// an answer away if bytes of the peer are unread when we close. Time limits are the caller's.
Task<> wait_for_end(Socket& socket);

// Both, one after the other.
Task<> answer_and_close(Socket& socket, HttpAnswer answer);

// Writes it without waiting and hangs up: for a client whose request will not be read. The answer
// is lost if the client's request comes later than that.
void answer_at_once(Socket& socket, HttpAnswer answer);

}  // namespace millrace
