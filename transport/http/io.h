// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "transport/http/message.h"
#include "transport/net/tls/stream_socket.h"

namespace millrace {

// Reads the header of one request, and appends the bytes read beyond it to `rest`. Has no time
// limit: the caller closes the socket to end it. `socket` and `rest` outlive the task.
Task<Result<HttpQuery, HttpFault>> read_query(StreamSocket& socket, std::string& rest);

// Writes the answer with "Connection: close". Ignores errors, such as a connection that the peer
// has closed. `socket` outlives the task, also in the functions below.
Task<> write_answer(StreamSocket& socket, HttpAnswer answer);

// Ends our direction of the connection, then reads and drops the peer's bytes until the peer closes
// too, at most 64 KiB: if bytes are unread at the close, the kernel resets the connection and the
// peer loses the answer. Has no time limit.
Task<> wait_for_end(StreamSocket& socket);

// write_answer(), then wait_for_end().
Task<> answer_and_close(StreamSocket& socket, HttpAnswer answer);

// Writes the answer without waiting and ends our direction of the connection: for a client whose
// request will not be read. The answer is lost if the request arrives after that, and never written
// before a handshake of TLS.
void answer_at_once(StreamSocket& socket, HttpAnswer answer);

}  // namespace millrace
