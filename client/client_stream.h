// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "client/client_event.h"
#include "schemas/client_command.h"

namespace millrace {

class StreamPipe;

// One stream of a Client. One thread may send while another takes what comes; sending waits while
// the service has no room, taking while there is nothing. Everything that is sent keeps its order.
//
// A stream that failed says so in every call: StreamRefused, StreamFailed or ConnectionLost
// (client_error.h). What came before the failure is still given by next().
//
// Destroying one that is not over closes it. Thread-safe, but for moving and destroying.
class ClientStream {
 public:
  explicit ClientStream(std::shared_ptr<StreamPipe> pipe);
  ~ClientStream();
  ClientStream(ClientStream&&) noexcept;
  ClientStream& operator=(ClientStream&&) noexcept;

  // Frames, any number of bytes: a frame may straddle calls. They are copied. The positions of what
  // is sent are counted here. False where there was no room until then: nothing was sent.
  bool send_until(Bytes frames, Time deadline);
  void send(Bytes frames) { (void)send_until(frames, Time::max()); }
  bool try_send(Bytes frames) { return send_until(frames, Time::min()); }

  // The same for a command. Throws std::logic_error after End, as sending frames does, but a second
  // End does nothing; std::invalid_argument for a mark above 2^53 - 1 or a gap of none.
  bool send_until(const ClientMessage& command, Time deadline);
  void send(const ClientMessage& command) { (void)send_until(command, Time::max()); }
  bool try_send(const ClientMessage& command) { return send_until(command, Time::min()); }

  // The segment ends here, its final result is due; with a mark, Flushed{mark} follows it.
  void flush(std::optional<std::uint64_t> mark = {}) { send(client_message::Flush{mark}); }
  // The model starts afresh.
  void reset() { send(client_message::Reset{}); }
  // So many frames were lost here.
  void gap(std::uint64_t frames) { send(client_message::Gap{frames}); }
  // Nothing follows; results come until Closed.
  void end() { send(client_message::End{}); }

  // What comes next. Nothing: the stream is over (over() is true), or nothing came until then.
  std::optional<ClientEvent> next() { return next_until(Time::max()); }
  std::optional<ClientEvent> next_until(Time deadline);
  std::optional<ClientEvent> try_next() { return next_until(Time::min()); }

  // Lets go of it: the service works off what was sent, its results are dropped. Every call that is
  // running or comes throws StreamFailed ("closed"). Nothing where the stream has ended.
  void close();

  // next() has given Closed.
  bool over() const;
  // As Opened says it; empty before it came.
  std::string name() const;
  // Among the streams of its client: what Client::changed() calls it.
  std::uint64_t number() const;

 private:
  std::shared_ptr<StreamPipe> pipe_;
};

}  // namespace millrace
