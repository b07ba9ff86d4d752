// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/clients/client_door.h"
#include "load/streams/outcome.h"
#include "load/streams/stream_place.h"

namespace millrace::load {

// The clients of one thread: places i with i % stride == offset. Opens their streams, gives each
// packet to the door when it is due and no earlier, however late the service is (an open loop),
// ends streams and opens the next where they have a life, and accounts for what comes back.
//
// When something is due it is told; only when exactly it did something, it looks at the clock for.
// Confined to one thread.
class Crowd final : public ClientSink {
 public:
  Crowd(const RunFacts& run, std::uint32_t offset, std::uint32_t stride, ClientDoor& door);

  // Opens streams, a bounded number at a time. False when each is open or refused, as they are when
  // nothing has come of any for a time.
  bool go_on_opening(Time now);
  // Does what is due. When there is something to do next; nothing when all is over.
  std::optional<Time> go_on(Time now);
  // What has not ended by now is broken.
  void give_up(Time now);

  ClientOutcome& outcome() { return outcome_; }

  void opened(std::uint32_t place, Time now) override;
  void refused(std::uint32_t place, std::string_view why, Time now) override;
  void has_room(std::uint32_t place) override;
  void told(std::uint32_t place, const Told& result, Time now) override;
  void rejected(std::uint32_t place, std::uint64_t frames) override;
  void closed(std::uint32_t place, std::uint64_t frames, std::uint64_t rows, Time now) override;
  void broken(std::uint32_t place, std::string_view why, Time now) override;

 private:
  enum class State : std::uint8_t { none, opening, open, ending };
  struct Place {
    State state = State::none;
    std::uint64_t first = 0;  // packet of its stream
    std::uint64_t next = 0;
    std::uint64_t last = 0;  // behind the last one of its life
    Time opened{};
    std::uint64_t begin = 0;     // where the next result begins at the earliest
    std::uint64_t seq = 0;       // the least that it may have
    std::uint64_t answered = 0;  // rows
    std::uint64_t rejected = 0;  // frames
    bool gap = false;            // a result said so
    bool late = false;           // the next packet found no room before
  };
  StreamPlace stream_of(std::uint32_t place) { return {place, at(place).first}; }
  using Turn = std::pair<Time, std::uint32_t>;

  Place& at(std::uint32_t place) { return places_[place / stride_]; }
  std::uint64_t sent(const Place& place) const;  // frames
  void open(std::uint32_t place, std::uint64_t first);
  void refuse_opening(Time now);
  void begin(std::uint32_t place, Time now);
  void take_turn(std::uint32_t place, Time now);
  void finish(std::uint32_t place, Time now);
  void over(std::uint32_t place, Time now);

  const RunFacts& run_;
  const std::uint32_t offset_, stride_;
  ClientDoor& door_;
  std::vector<Place> places_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::uint32_t to_open_;  // the next place that was never opened
  std::size_t opening_ = 0;
  Time progress_ = Time::max();  // of opening
  std::size_t live_ = 0;         // opening, open or ending
  std::vector<std::byte> packet_;
  std::string answer_;
  ClientOutcome outcome_;
};

}  // namespace millrace::load
