// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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
#include "transport/websocket/frame_head.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// The protocol of one WebSocket client: translates the client's messages into calls of its stream,
// and the stream's calls into messages to the client. The client has one stream at a time, opened
// by open() at the upgrade or later. The session that runs the conversation handles bytes, limits
// and timeouts. Its scope outlives it. Confined to one thread.
class Conversation : public ClientOutput {
 public:
  // A message of the client, not a ping. Not called after queue().closing().
  virtual void received(const Connection::Message& message) = 0;
  // A part of the last message waits, so that other connections are served before: call proceed()
  // until it is false, before the next received().
  virtual bool is_unfinished() const { return false; }
  virtual void proceed() {}
  // The longest time without a stream.
  virtual std::chrono::milliseconds longest_wait() const { return queue_.scope().limits().waiting; }
  // The client sent no message for too long. True if the connection continues.
  virtual bool outlives_silence(Time /*now*/) { return false; }
  // The client has sent its last message, according to the protocol. It then only has to answer
  // pings.
  virtual bool has_ended() const = 0;

  SessionQueue& queue() { return queue_; }
  const SessionQueue& queue() const { return queue_; }
  // The open stream; null while no stream is open.
  StreamInput* stream() const { return stream_.get(); }
  // end_stream() was called, and the stream is not over.
  bool is_ending() const { return is_ending_; }
  bool paused() const { return is_ending_ || (stream_ && stream_->paused()); }

  // Ends the conversation and its stream with an error, which is sent to the client.
  void fail(ErrorCode code, std::string_view message, Time now);
  // The connection must end soon: drains the stream; or closes the connection if it has none, or
  // one that outlives it.
  void drain(Time now);
  // Messages were written to the socket.
  void written(Time now);
  // Call it several times a second while the client is not read.
  void tick(Time now) {
    if (stream_) stream_->tick(now);
  }
  // Releases the stream if it is over. Call it several times a second.
  void check(Time now) {
    if (over_) release_stream();
    if (stream_) stream_->check(now);
  }
  // The connection has ended.
  void disconnected(ConnectionEnd how, Time now);

  const ClientIdentity& client() const { return client_; }
  std::string peer() const override { return client_.peer; }
  bool has_room() const override { return queue_.unsent() < queue_.scope().limits().unsent / 2; }
  void drop_queued() override { queue_.drop_queued(); }
  std::size_t reclaimable() const override { return queue_.reclaimable(); }
  void resume() override { queue_.to_read().notify(); }
  void credit_available() override {}  // WebSocket has no credit: TCP provides back-pressure

 protected:
  Conversation(SessionScope& scope, ClientIdentity client)
      : queue_(scope, full_), client_(std::move(client)) {}

  // Opens a stream with this object as its output; returns the error if it is refused. Requires: no
  // stream is open, or stream_is_over() was called.
  std::optional<RequestError> open(StreamAdmission& admission, StreamRequest request);
  // A stream is open, and not over.
  bool is_open() const { return stream_ && !over_; }
  // Ends the stream, and does not read the client until stream_is_over(). Requires: a stream is
  // open.
  void end_stream(Time now);
  // Call it in error() or closed() if the connection stays open: the stream is released once its
  // call has returned.
  void stream_is_over();

 private:
  void release_stream();

  SessionQueue queue_;
  const ClientIdentity client_;
  StreamHandle stream_;  // after queue_: destroyed before it
  bool over_ = false;
  bool is_ending_ = false;
};

// The end of a connection, as its stream learns it.
inline ConnectionEnd end_of(const Connection::Ended& ended) {
  if (ended.how != Connection::Ended::How::closed) return ConnectionEnd::lost;
  if (ended.code == close_codes::normal) return ConnectionEnd::clean;
  return ended.code == close_codes::going_away ? ConnectionEnd::moved : ConnectionEnd::closed;
}

// A protocol of WebSocket clients, chosen by the path of the request. Confined to one thread.
class WebSocketProtocol {
 public:
  struct Accepted {
    Upgrade upgrade;
    std::unique_ptr<Conversation> conversation;
    // The most bytes of a client's message; nullopt: `message` of the limits.
    std::optional<std::size_t> longest_message{};
  };

  virtual ~WebSocketProtocol() = default;
  virtual std::string_view path() const = 0;
  // Accepts or refuses the upgrade that `query`, a request for path(), asks for.
  virtual Result<Accepted, RequestError> accept(const HttpQuery& query, SessionScope& scope,
                                                const ClientIdentity& client) = 0;
  // The request continues a stream.
  virtual bool resumes(const HttpQuery& /*query*/) const { return false; }
  // The index of the io thread that has this stream; nullopt: this one.
  virtual std::optional<std::uint32_t> thread_of(const HttpQuery& /*query*/,
                                                 const ClientIdentity& /*client*/) const {
    return std::nullopt;
  }
  // The HTTP answer to a request for path() that was refused, here or before.
  virtual HttpAnswer answer(const RequestError& error, SessionScope& /*scope*/) const {
    return answer_to(error);
  }
};

}  // namespace millrace
