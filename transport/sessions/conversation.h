// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/http/message.h"
#include "transport/sessions/session_queue.h"
#include "transport/sessions/stream_admission.h"
#include "transport/websocket/connection.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// One WebSocket client, in the protocol that it speaks: translates its messages into calls of its
// stream, and the stream's calls into messages to it. Streams come one after the other, at the
// upgrade or later, each opened by open(). The session that runs the conversation handles bytes,
// bounds and time limits. Its scope outlives it. Confined to one thread.
class Conversation : public ClientOutput {
 public:
  // The next message of the client's; not called once queue().closing(). Pings do not come here.
  virtual void received(const Connection::Message& message) = 0;
  // The client has sent its last message, by the protocol's own rules. Then it need only answer
  // pings.
  virtual bool has_ended() const = 0;

  SessionQueue& queue() { return queue_; }
  // The stream that is open; null before, between and after streams.
  StreamInput* stream() const { return stream_.get(); }
  bool paused() const { return stream_ && stream_->paused(); }

  // From the session: ClientOutput::error() ends the conversation, the stream with it.
  void fail(ErrorCode code, std::string_view message, Time now);
  // The connection is to end soon: the stream drains; without one the connection is closed.
  void drain(Time now);
  // Messages were given to the socket.
  void written(Time now);
  // Time has passed while the client was not read.
  void tick(Time now) {
    if (stream_) stream_->tick(now);
  }
  // The connection is lost; `clean`: with the client's close 1000.
  void lost(bool clean, Time now);

  std::string peer() const override { return peer_; }
  void drop_untaken() override { queue_.drop_untaken(); }
  std::size_t reclaimable() const override { return queue_.reclaimable(); }
  void resume() override { queue_.to_read().notify(); }
  void has_room() override {}  // TCP pushes back, there is no credit

 protected:
  // `peer` is the client's address.
  Conversation(SessionScope& scope, std::string peer)
      : queue_(scope, full_), peer_(std::move(peer)) {}

  // Opens a stream with this as its output, or says why not. Requires: there is none, or
  // stream_is_over() was called.
  std::optional<RequestError> open(StreamAdmission& admission, StreamRequest request);
  // To be called in error() or closed() if the connection stays: the stream is released as soon as
  // it has returned.
  void stream_is_over() { over_ = true; }

 private:
  void release_stream();

  SessionQueue queue_;
  const std::string peer_;
  StreamHandle stream_;  // after queue_: destroyed before it
  bool over_ = false;
};

// A protocol of clients over WebSocket. Used on one thread.
class WebSocketProtocol {
 public:
  struct Accepted {
    Upgrade upgrade;
    std::unique_ptr<Conversation> conversation;
  };

  virtual ~WebSocketProtocol() = default;
  // Answers the upgrade that `query` asks for, or refuses it. Status 404: no path of this protocol.
  virtual Result<Accepted, RequestError> accept(const HttpQuery& query, SessionScope& scope,
                                                std::string_view peer) = 0;
};

}  // namespace millrace
