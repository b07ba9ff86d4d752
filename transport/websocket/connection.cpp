// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/connection.h"

namespace millrace {

Task<Connection::Received> Connection::receive() {
  for (;;) {
    auto received = next();
    if (received) co_return std::move(*received);
    co_await readable();
  }
}

Task<bool> Connection::send(Kind kind, std::string_view bytes) {
  add(kind, bytes);
  co_return co_await flushed();
}

Task<bool> Connection::flushed() {
  for (;;) {
    const Flushed flushed = flush();
    if (flushed != Flushed::later) co_return flushed == Flushed::all;
    co_await writable();
  }
}

}  // namespace millrace
