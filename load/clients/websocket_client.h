// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "load/clients/load_transport.h"
#include "transport/net/limits.h"
#include "transport/net/tls/tls_session.h"
#include "transport/websocket/message_reader.h"
#include "transport/websocket/random_keys.h"

namespace millrace::load {

// Buffers that the clients of a thread share; one client uses them at a time.
struct WebSocketScratch {
  std::string message;                                                 // the message to write
  std::vector<std::byte> arrived = std::vector<std::byte>(256 << 10);  // bytes of one read
  RandomKeys keys;
};

// One client's connection (docs/protocol.md), on a non-blocking socket. Does not allocate for a
// message that is written or read in one call. Confined to one thread.
class WebSocketClient {
 public:
  // `socket` is connecting; `tls` is null or a session on it; `request` is the complete header of
  // the upgrade; `client` is the index of the client. `scratch` must outlive this object.
  WebSocketClient(FileDescriptor socket, std::unique_ptr<TlsSession> tls, std::string request,
                  std::uint32_t client, WebSocketScratch& scratch);

  int socket() const { return socket_.get(); }

  // False if earlier bytes are not written yet: nothing was sent, and writable() follows.
  [[nodiscard]] bool send(Bytes frames);
  void end();

  // Reads and writes as the socket allows. False if the connection is over: closed(), refused() or
  // broken() was called.
  [[nodiscard]] bool turn(bool readable, bool writable, ClientSink& sink);
  // True if turn() must be called when the socket is writable.
  bool waits_to_write() const {
    if (tls_ && tls_->read_awaits() == Socket::wait_write) return true;
    return state_ == State::connecting || (!unsent_.empty() && !write_awaits_input());
  }

 private:
  enum class State : std::uint8_t { connecting, upgrading, open, closing, over };

  std::size_t transmit(Bytes bytes);
  ssize_t receive(MutableBytes into);
  // True while TLS must read before it can write: in its handshake.
  bool write_awaits_input() const { return tls_ && tls_->write_awaits() == Socket::wait_read; }
  void write(Opcode opcode, Bytes payload);
  void flush(ClientSink& sink);
  void connected(ClientSink& sink);
  void read(ClientSink& sink);
  MutableBytes read_upgrade(MutableBytes bytes, Time now, ClientSink& sink);
  void handle(const MessageReader::Event& event, Time now, ClientSink& sink);
  void handle_close(std::uint16_t code, Time now, ClientSink& sink);
  void handle_result(Bytes message, Time now, ClientSink& sink);
  void handle_text(std::string_view text, Time now, ClientSink& sink);
  void fail(std::string_view why, ClientSink& sink);

  FileDescriptor socket_;
  std::unique_ptr<TlsSession> tls_;  // null: none
  const std::uint32_t client_;
  WebSocketScratch& scratch_;
  State state_ = State::connecting;
  bool full_ = false;   // the last send() was false
  std::string unsent_;  // the rest of a message, at first the request
  std::string unread_;  // the first bytes of a frame, or of the answer to the upgrade
  MessageReader reader_{Role::client, max_service_message, 0};
  std::string why_;           // the code of an error of the service
  std::uint64_t frames_ = 0;  // the number of frames in a `closed` message
  std::uint64_t rows_ = 0;    // the number of rows in a `closed` message
};

}  // namespace millrace::load
