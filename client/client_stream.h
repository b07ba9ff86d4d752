// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/time.h"
#include "client/client_event.h"
#include "schemas/client_command.h"

namespace millrace {

class StreamPipe;

// One stream of a Client. One thread may send while another receives. Sending waits while the queue
// of unsent bytes is full, next() while there is no event. Frames and commands keep their order.
//
// If a stream has failed, every call that sends or receives throws StreamRefused, StreamFailed or
// ConnectionLost (client_error.h). next() first returns the events that arrived before the failure.
//
// The destructor closes the stream if it is not over. Thread-safe, except for moving and
// destroying.
class ClientStream {
 public:
  explicit ClientStream(std::shared_ptr<StreamPipe> pipe);
  ~ClientStream();
  ClientStream(ClientStream&&) noexcept;
  ClientStream& operator=(ClientStream&&) noexcept;

  // Sends a copy of the bytes. Their number is arbitrary: a frame may straddle calls. A stream with
  // the format "opus" sends one packet per call; std::invalid_argument if the packet is empty or
  // longer than any Opus packet. False if the queue was full until `deadline`: nothing was sent
  // then.
  bool send_until(Bytes frames, Time deadline);
  void send(Bytes frames) { (void)send_until(frames, Time::max()); }
  bool try_send(Bytes frames) { return send_until(frames, Time::min()); }

  // The same for a command. After End, sending frames or a command throws std::logic_error; a
  // second End does nothing. Throws std::invalid_argument for a mark above 2^53 - 1, and for a gap
  // of 0 or more than 2^53 - 1 frames.
  bool send_until(const ClientMessage& command, Time deadline);
  void send(const ClientMessage& command) { (void)send_until(command, Time::max()); }
  bool try_send(const ClientMessage& command) { return send_until(command, Time::min()); }

  // Ends the segment: its final result is due. With a mark, Flushed{mark} follows this result.
  void flush(std::optional<std::uint64_t> mark = {}) { send(client_message::Flush{mark}); }
  // Ends the run: the model starts with a fresh state.
  void reset() { send(client_message::Reset{}); }
  // Reports that `frames` frames of the client were lost here; for Opus, packets.
  void gap(std::uint64_t frames) { send(client_message::Gap{frames}); }
  // Sends a message to the worker, which receives it with the stream's next row. `data` is a JSON
  // value; std::invalid_argument if it is not.
  void message(std::string data) { send(client_message::Message{std::move(data)}); }
  // Changes options of the stream: `options` is a JSON object with those that change.
  void set(std::string options) { send(client_message::Set{std::move(options)}); }
  // Ends the input. Results follow until Closed.
  void end() { send(client_message::End{}); }

  // The next event. Nullopt if the stream is over (over() is true), or if no event came until
  // `deadline`.
  std::optional<ClientEvent> next() { return next_until(Time::max()); }
  std::optional<ClientEvent> next_until(Time deadline);
  std::optional<ClientEvent> try_next() { return next_until(Time::min()); }

  // Closes the stream. The service still processes what was sent; its results are dropped. Calls in
  // progress and later calls throw StreamFailed ("closed"). Does nothing if the stream has ended.
  void close();

  // True once next() has returned Closed.
  bool over() const;
  // The name in Opened; empty before Opened arrives.
  std::string name() const;
  // The stream's number in Client::changed(), unique among the streams of its client.
  std::uint64_t number() const;

 private:
  std::shared_ptr<StreamPipe> pipe_;
};

}  // namespace millrace
