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
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "client/client_event.h"
#include "client/internal/changes.h"
#include "client/internal/stream_failure.h"
#include "schemas/client_command.h"

namespace millrace {

// What the user of a stream and its client's thread share of it: what was said and is to be sent,
// what came and is to be taken, and how it ended. Two bounded queues in one, for each end wants to
// know of the other's end too: hence a mutex here.
//
// Thread-safe. The user calls the first part, the client's thread the second.
class StreamPipe {
 public:
  using Said = std::variant<std::string, ClientMessage>;  // frames, or a command

  struct Bounds {
    std::size_t unsent = 0;   // bytes that were said and not sent; from there on saying waits
    std::size_t untaken = 0;  // bytes of events; from there on no more of them should come
  };

  // `wake` tells the client's thread that there is something to do; it is called by any thread,
  // under the mutex, and not once the stream has ended: so it need not live longer, as `changes`.
  StreamPipe(std::uint64_t number, Bounds bounds, Changes& changes, std::function<void()> wake);

  std::uint64_t number() const { return number_; }

  // See ClientStream.
  bool say(Bytes frames, Time deadline);
  bool say(const ClientMessage& command, Time deadline);
  std::optional<ClientEvent> next(Time deadline);
  bool over() const;
  std::string name() const;
  // The user is gone: takes nothing more, each of its calls throws. What was said is still to be
  // sent. Nothing where the stream has ended.
  void abandon();

  // Exchanges everything that was said for the content of `into`, which is cleared first. It counts
  // as unsent until sent() is told.
  void take(std::vector<Said>& into);
  void sent(const Said& said);
  void deliver(ClientEvent event);
  // Too much waits for the user: from the bound on, until half of that was taken and the wake that
  // follows. Since when: that began, or something was taken.
  bool held_up();
  Time held_up_since() const;
  bool abandoned() const;
  // The end, one of the two; what comes later is dropped.
  void close(client_event::Closed closed);
  void fail(StreamFailure why);

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool ended() const { return closed_ || failure_; }
  bool await_room(Lock& lock, Time deadline);
  void push(Said said);
  void go_on();
  void add(ClientEvent event);
  void announce(bool& wanted);
  void end();

  const std::uint64_t number_;
  const Bounds bounds_;
  Changes& changes_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable room_, came_;
  std::vector<Said> said_;
  std::size_t unsent_ = 0;  // bytes
  std::deque<ClientEvent> events_;
  std::size_t untaken_ = 0;  // bytes
  std::string name_;
  std::optional<StreamFailure> failure_;
  bool closed_ = false;  // the service has closed it
  bool end_said_ = false;
  bool abandoned_ = false;
  bool held_up_ = false;
  Time held_up_since_{};
  bool room_wanted_ = false, event_wanted_ = false;  // the user came and went away
};

}  // namespace millrace
