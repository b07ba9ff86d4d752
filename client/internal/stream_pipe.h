// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "client/client_event.h"
#include "client/internal/changes.h"
#include "client/internal/resume/queued_input.h"
#include "client/internal/stream_failure.h"
#include "schemas/client_command.h"

namespace millrace {

// The state of a stream that its user and the client's thread share: the queued input, the queued
// events, and how the stream ended. One mutex guards both queues, because a wait for either also
// ends with the stream.
//
// Thread-safe. The user calls the first group of functions, the client's thread the second.
class StreamPipe {
 public:
  using Queued = QueuedInput;

  // The content of one queue(Bytes): any bytes of frames, or one Opus packet.
  enum class Input { bytes, packet };
  struct Bounds {
    std::size_t unsent = 0;   // bytes of input that is not sent, at which queue() waits
    std::size_t untaken = 0;  // bytes of events at which the stream is held up
  };

  // `wake` must notify the client's thread that the state of this pipe has changed. Any thread may
  // call it, with the mutex locked. Neither `wake` nor `changes` is used after the stream has
  // ended.
  StreamPipe(std::uint64_t number, Bounds bounds, Changes& changes, std::function<void()> wake,
             Input input = Input::bytes);

  std::uint64_t number() const { return number_; }
  // True if each entry of frames is an Opus packet: a message of its own, and one frame.
  bool has_packets() const { return input_ == Input::packet; }

  // As in ClientStream: queue() is send_until(), next() is next_until().
  bool queue(Bytes frames, Time deadline);
  bool queue(const ClientMessage& command, Time deadline);
  std::optional<ClientEvent> next(Time deadline);
  bool over() const;
  std::string name() const;
  // The user has closed the stream: drops the events, and the user's calls throw. The queued input
  // is still sent. Does nothing if the stream has ended.
  void abandon();

  // Moves all queued input to `into`, which is cleared first and lends its memory to the queue. The
  // input counts as unsent until sent().
  void take(std::vector<Queued>& into);
  void sent(const Queued& queued);
  void deliver(ClientEvent event);
  // True from the moment when `untaken` bytes of events are queued until the user has taken half of
  // them; a wake follows.
  bool held_up();
  // True if the messages of workers alone, which do not answer a row, are 4 * `untaken` bytes.
  bool overflows() const;
  // When the stream was held up, or when the user last took an event after that.
  Time held_up_since() const;
  bool abandoned() const;
  bool has_ended() const;
  // The end of the stream: one of these two. Later events and ends are dropped.
  void close(client_event::Closed closed);
  void fail(StreamFailure why);

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool ended() const { return closed_ || failure_; }
  bool await_space(Lock& lock, Time deadline);
  void push(Queued queued);
  void resume_if_drained();
  void add(ClientEvent event);
  void announce(bool& wanted);
  void end();

  const std::uint64_t number_;
  const Bounds bounds_;
  const Input input_;
  Changes& changes_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable space_available_, event_available_;
  std::vector<Queued> queued_;
  std::size_t unsent_ = 0;  // bytes
  std::deque<ClientEvent> events_;
  std::size_t untaken_ = 0;           // bytes
  std::size_t untaken_messages_ = 0;  // the part of it that is messages of workers
  std::string name_;
  std::optional<StreamFailure> failure_;
  bool closed_ = false;  // the service has closed it
  bool end_queued_ = false;
  bool abandoned_ = false;
  bool held_up_ = false;
  Time held_up_since_{};
  bool space_wanted_ = false, event_wanted_ = false;  // the user's last call did not succeed
};

}  // namespace millrace
