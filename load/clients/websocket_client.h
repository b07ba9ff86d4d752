// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/clients/client_door.h"
#include "transport/net/file_descriptor.h"
#include "transport/net/limits.h"
#include "transport/websocket/message_reader.h"
#include "transport/websocket/random_keys.h"

namespace millrace::load {

// What the clients of a thread write and read with, one at a time.
struct WebSocketScratch {
  std::string message;                                                 // that is being written
  std::vector<std::byte> arrived = std::vector<std::byte>(256 << 10);  // in one read
  RandomKeys keys;
};

// One client's connection (docs/protocol.md), on a socket that does not block. Nothing is allocated
// for a message that is written and read at once. Confined to one thread.
class WebSocketClient {
 public:
  // The socket is being connected; `request` is the upgrade, to the end of its header. The others
  // outlive it.
  WebSocketClient(FileDescriptor socket, std::string request, std::uint32_t place,
                  WebSocketScratch& scratch);

  int socket() const { return socket_.get(); }

  // False: what was sent before is not written yet, has_room() follows.
  [[nodiscard]] bool send(Bytes frames);
  void end();

  // What the socket is ready for. False when it is over: the sink was told, or by refused() or
  // broken().
  [[nodiscard]] bool turn(bool readable, bool writable, ClientSink& sink);
  // The socket is to be watched for that too.
  bool waits_to_write() const { return state_ == State::connecting || !unsent_.empty(); }

 private:
  enum class State : std::uint8_t { connecting, upgrading, open, told, over };

  void write(Opcode opcode, Bytes payload);
  void flush(ClientSink& sink);
  void connected(ClientSink& sink);
  void read(ClientSink& sink);
  MutableBytes take_upgrade(MutableBytes bytes, Time now, ClientSink& sink);
  void take(const MessageReader::Event& event, Time now, ClientSink& sink);
  void take_close(std::uint16_t code, Time now, ClientSink& sink);
  void take_result(Bytes message, Time now, ClientSink& sink);
  void take_text(std::string_view text, Time now, ClientSink& sink);
  void fail(std::string_view why, ClientSink& sink);

  FileDescriptor socket_;
  const std::uint32_t place_;
  WebSocketScratch& scratch_;
  State state_ = State::connecting;
  bool full_ = false;   // a send found no room
  std::string unsent_;  // of a message that was begun; first of all the request
  std::string unread_;  // the beginning of a frame, or of the answer to the upgrade
  MessageReader reader_{Role::client, longest_told, 0};
  std::string why_;           // the service said in an error
  std::uint64_t frames_ = 0;  // the service said it had
  std::uint64_t rows_ = 0;    // it said it cut of them
};

}  // namespace millrace::load
