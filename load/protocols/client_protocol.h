// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "load/protocols/client_sink.h"
#include "transport/websocket/frame_head.h"

namespace millrace::load {

// Writes messages and close frames to the connection of one stream.
class FrameWriter {
 public:
  virtual void write(Opcode opcode, std::string_view payload) = 0;

 protected:
  ~FrameWriter() = default;
};

// The request of an upgrade: its target, and the subprotocols that it lists.
struct RequestedStream {
  std::string target;
  std::string subprotocols;  // empty: none
};

// The messages of one stream over WebSocket: writes those of the client, and reports those of the
// service to a sink. A stream that resumes has several connections, one after the other. Does no
// I/O. Confined to one thread.
class ClientSession {
 public:
  explicit ClientSession(std::uint32_t client) : client_(client) {}
  virtual ~ClientSession() = default;

  std::uint32_t client() const { return client_; }
  // opened() was called.
  bool is_open() const { return open_; }
  // A close of the connection is the end of the stream now, and not an error.
  bool has_ended() const { return ended_; }
  // The service's description of an error; may be empty.
  const std::string& why() const { return why_; }
  virtual std::optional<StreamTotals> totals() const { return std::nullopt; }

  // Messages pass over the current connection. False while a stream that resumes has none.
  virtual bool is_connected() const { return open_; }
  // False if send() must wait, because the session keeps as many frames as it may.
  virtual bool has_room() const { return true; }

  // The stream survives the loss of its connection. The next three functions require this.
  virtual bool can_resume() const { return false; }
  // The connection was lost, or an attempt to connect again has failed: when to try next; nullopt
  // if it is too late.
  virtual std::optional<Time> next_connection(Time) { return std::nullopt; }
  // The request of this connection.
  virtual RequestedStream resuming_request() { return {}; }
  // True if a refusal with this HTTP status is temporary.
  virtual bool outlasts(std::string_view) { return false; }

  // The upgrade was accepted.
  virtual void start(Time now, ClientSink& sink) { open(now, sink); }
  // The following require: is_open(). Without a connection they write nothing.
  virtual void send(Bytes frames, FrameWriter& to) = 0;
  // Asks for the result of the audio so far. `due`: when its last packet was due.
  virtual void commit(Time due, FrameWriter& to) = 0;
  virtual void end(FrameWriter& to) = 0;

  // A message of the service. False if the stream cannot continue: why() has the reason, if known.
  [[nodiscard]] virtual bool received(bool is_text, Bytes message, Time now, ClientSink& sink,
                                      FrameWriter& to) = 0;

 protected:
  void open(Time now, ClientSink& sink) {
    open_ = true;
    sink.opened(client_, now);
  }

  bool ended_ = false;
  std::string why_;

 private:
  const std::uint32_t client_;
  bool open_ = false;
};

// A protocol over WebSocket, and the parameters that all streams of a load have. Confined to one
// thread.
class ClientProtocol {
 public:
  virtual ~ClientProtocol() = default;
  // The target of the upgrade of a stream.
  virtual std::string target(const std::string& stream) = 0;
  // The subprotocol of the upgrade; empty: none.
  virtual std::string_view subprotocol() const { return {}; }
  // A session must not outlive the protocol.
  virtual std::unique_ptr<ClientSession> session(std::uint32_t client,
                                                 const std::string& stream) = 0;
};

}  // namespace millrace::load
