// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "load/protocols/client_protocol.h"
#include "load/streams/schedule.h"
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

// One client's connection, on a non-blocking socket. Does not allocate for a message that is
// written or read in one call. Confined to one thread.
class WebSocketClient final : FrameWriter {
 public:
  // `socket` is connecting; `tls` is null or a session on it; `request` is the complete header of
  // the upgrade; `session` has the messages of the stream. `session` and `scratch` must outlive
  // this object.
  WebSocketClient(FileDescriptor socket, std::unique_ptr<TlsSession> tls, std::string request,
                  ClientSession& session, WebSocketScratch& scratch);

  int socket() const { return socket_.get(); }

  // False if earlier bytes are not written yet: nothing was sent, and writable() follows.
  [[nodiscard]] bool send(Bytes frames);
  void commit(Time due) { session_.commit(due, *this); }
  void end() { session_.end(*this); }

  // Cuts the connection: is_lost() follows, at once or with the next send() that is true.
  void cut(const Cut& cut);
  // The connection is over, and the session can resume the stream.
  bool is_lost() const { return state_ == State::lost; }

  // Reads and writes as the socket allows. False if the connection is over: is_lost(), or closed(),
  // refused() or broken() was called.
  [[nodiscard]] bool turn(bool readable, bool writable, ClientSink& sink);
  // True if turn() must be called when the socket is writable.
  bool waits_to_write() const {
    if (tls_ && tls_->read_awaits() == Socket::wait_write) return true;
    return state_ == State::connecting || (!unsent_.empty() && !write_awaits_input());
  }

 private:
  enum class State : std::uint8_t { connecting, upgrading, open, over, lost };

  bool is_over() const { return state_ == State::over || state_ == State::lost; }

  std::size_t transmit(Bytes bytes);
  ssize_t receive(MutableBytes into);
  // True while TLS must read before it can write: in its handshake.
  bool write_awaits_input() const { return tls_ && tls_->write_awaits() == Socket::wait_read; }
  void write(Opcode opcode, std::string_view payload) override;
  void flush(ClientSink& sink);
  void connected(ClientSink& sink);
  void read(ClientSink& sink);
  MutableBytes read_upgrade(MutableBytes bytes, Time now, ClientSink& sink);
  void refused(std::string_view status, Time now, ClientSink& sink);
  void handle(const MessageReader::Event& event, Time now, ClientSink& sink);
  void handle_close(const MessageReader::Close& close, Time now, ClientSink& sink);
  void close(Time now, ClientSink& sink);
  // The connection was lost.
  void lose(std::string_view why, ClientSink& sink);
  void fail(std::string_view why, ClientSink& sink);
  void report_room(ClientSink& sink);

  FileDescriptor socket_;
  std::unique_ptr<TlsSession> tls_;  // null: none
  ClientSession& session_;
  WebSocketScratch& scratch_;
  State state_ = State::connecting;
  bool full_ = false;   // the last send() was false
  std::string unsent_;  // the rest of a message, at first the request
  std::string unread_;  // the first bytes of a frame, or of the answer to the upgrade
  MessageReader reader_{Role::client, max_service_message, 0};
  bool close_sent_ = false;
  std::optional<Cut> cut_;  // within the next message
};

}  // namespace millrace::load
