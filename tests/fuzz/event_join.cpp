// SPDX-License-Identifier: Apache-2.0
// Chooses the slices of a stream, as a forged recording file may have them, and gives their events
// to a chunker, which must accept them.
#include "recording/reader/event_join.h"

#include <vector>

#include "chunker/chunker.h"
#include "tests/fuzz/target.h"

namespace millrace::recording {
namespace {

using fuzz::Choices;
using fuzz::require;
using Kind = Event::Kind;

constexpr std::uint64_t most = ~std::uint64_t{0};
constexpr Spec spec{.size = 1 << 20};

// A number near the one that continues the stream, or any other.
std::uint64_t near(Choices& choices, std::uint64_t number) {
  const std::uint8_t how = choices.byte();
  if (how < 128) return number;
  if (how < 192) return number + choices.number(most);
  return how < 224 ? number - choices.number(number) : choices.number(most);
}

// What the slices of an honest file would have next.
struct Next {
  std::uint32_t number = 0;
  std::uint64_t event = 0;
  std::uint64_t position = 0;
  std::uint32_t size = 0;
};

RecordedEvent choose_event(Choices& choices, std::uint64_t number, std::uint64_t begin) {
  Event event{.kind = static_cast<Kind>(choices.byte() % 10)};
  if (number == 0 && choices.byte() > 32) event.kind = Kind::open;
  if (number > 0 && event.kind == Kind::open) event.kind = Kind::frames;
  event.cause = static_cast<Cause>(choices.byte() % 8);
  // The decoder has checked that a slice has the bytes of its frames.
  if (event.kind == Kind::frames) event.count = choices.byte();
  if (event.kind == Kind::gap || event.kind == Kind::size) event.count = choices.number(most);
  if (event.kind == Kind::open) {
    event.count = begin;
    event.rows = choices.number(most);
  }
  return {.event = event};
}

class Join {
 public:
  void add(Choices& choices) {
    const auto number = static_cast<std::uint32_t>(near(choices, next_.number));
    Slice slice{.first_event = near(choices, next_.event),
                .begin = near(choices, next_.position),
                .size = static_cast<std::uint32_t>(near(choices, next_.size))};
    events_.clear();
    std::size_t frames = 0;
    for (std::uint8_t events = choices.byte() % 5; events > 0; --events) {
      events_.push_back(choose_event(choices, slice.first_event + events_.size(), slice.begin));
      const Event& event = events_.back().event;
      if (event.kind == Kind::frames) frames += event.count;
      if (event.kind == Kind::frames || event.kind == Kind::gap) next_.position += event.count;
      if (event.kind == Kind::size) next_.size = static_cast<std::uint32_t>(event.count);
    }
    values_.resize(frames);
    slice.events = events_;
    slice.frames = values_;
    if (choices.byte() % 4 == 0)
      slice.lost = LostEvents{.first_event = choices.number(slice.first_event),
                              .begin = choices.number(slice.begin)};
    if (choices.byte() == 1) slice.closing = StreamTotals{};
    next_.number = number + 1;
    next_.event = slice.first_event + events_.size();
    join_.add(number, slice, "damaged");
    read();
  }

  void finish(std::uint64_t end) {
    join_.finish(end, "no end");
    read();
    require(join_.over(), "the reader is at the end");
    require(last_.kind == Kind::end || last_.kind == Kind::abort, "and so is the stream");
  }

 private:
  void read() {
    while (const auto item = join_.next()) {
      const auto* read = std::get_if<RecordedEvent>(&*item);
      if (!read) continue;
      last_ = read->event;
      require(begun_ == (last_.kind != Kind::open), "the first event is the open, and no other");
      require(!ended_, "the end is the last event");
      begun_ = true;
      if (last_.kind == Kind::open) position_ = last_.count;
      require(read->position == position_, "an event has the position before it");
      ended_ = last_.kind == Kind::end || last_.kind == Kind::abort;
      require(last_.kind != Kind::gap || last_.count >= 1, "a gap has frames");
      require(
          last_.kind == Kind::frames ? read->frames.size() == last_.count : read->frames.empty(),
          "frames have their values");
      if (last_.kind == Kind::frames || last_.kind == Kind::gap) {
        require(last_.count <= max_position - position_, "no position is too large");
        position_ += last_.count;
      }
      // A small size would make many rows.
      if (last_.kind == Kind::size && (last_.count < 4096 || !spec.check_size(last_.count)))
        continue;
      chunker_.add(last_);
      while (chunker_.next()) continue;
    }
  }

  EventJoin join_{1};
  Chunker chunker_{spec};
  Next next_;
  std::vector<RecordedEvent> events_;
  std::vector<std::byte> values_;
  Event last_{};
  std::uint64_t position_ = 0;
  bool begun_ = false, ended_ = false;
};

}  // namespace
}  // namespace millrace::recording

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  millrace::fuzz::Choices choices(bytes, size);
  const std::uint64_t end = choices.number(~std::uint64_t{0});
  millrace::recording::Join join;
  while (!choices.empty()) join.add(choices);
  join.finish(end);
  return 0;
}
