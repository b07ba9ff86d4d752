// SPDX-License-Identifier: Apache-2.0
// Chooses a chunk rule and the events of a stream, and compares the rows of the chunker with those
// of the executable contract (ReferenceChunker).
#include "chunker/chunker.h"

#include <vector>

#include "chunker/row_layout.h"
#include "tests/fuzz/target.h"
#include "tests/support/chunk_reference.h"

namespace millrace {
namespace {

using fuzz::Choices;
using fuzz::require;

// The largest number of bodies that overlap, or that one event completes: bounds the rows of an
// input.
constexpr std::uint64_t most_bodies = 16;
constexpr std::size_t most_events = 48;

std::uint32_t length(Choices& choices, std::uint64_t most) {
  return static_cast<std::uint32_t>(choices.number(std::min<std::uint64_t>(most, max_window)));
}

Spec choose_spec(Choices& choices) {
  Spec spec;
  spec.tail = static_cast<Spec::Tail>(choices.byte() % 3);
  spec.step = length(choices, max_window);
  spec.size = 1 + length(choices, spec.step > 0 ? most_bodies * spec.step : max_window);
  const std::uint64_t most = most_bodies * (spec.step > 0 ? spec.step : spec.size);
  spec.first = length(choices, most);
  spec.left = length(choices, max_window);
  spec.right = length(choices, most);
  spec.min = length(choices, max_window);
  return spec;
}

// A number of frames that ends at a boundary of bodies, or one frame beside it.
std::uint64_t choose_border(Choices& choices, std::uint64_t step, std::uint64_t window) {
  const std::uint64_t bodies = choices.byte() % most_bodies, beside = choices.byte() % 3;
  return bodies * step + window + beside - 1;
}

// A size event whose bodies are large enough, so that the waiting frames do not become too many
// rows.
Event choose_size(Choices& choices, const Spec& spec, std::uint64_t size) {
  const std::uint64_t waits = std::max<std::uint64_t>(size, spec.first) + spec.right;
  const std::uint64_t count = 1 + waits / most_bodies + choices.number(max_window);
  if (!spec.check_size(count)) return {.kind = Event::Kind::flush};
  return {.kind = Event::Kind::size, .count = count};
}

// The next event of a stream at `position` with bodies of `size`. Only `first` may be an open.
Event choose_event(Choices& choices, const Spec& spec, std::uint64_t position, std::uint64_t size,
                   bool first) {
  const std::uint64_t room = max_position - position;
  const std::uint64_t step = spec.step > 0 ? spec.step : size;
  Event event{.kind = static_cast<Event::Kind>(choices.byte() % 10)};
  switch (event.kind) {
    case Event::Kind::open:
      if (first) {
        event.count = choices.number(max_position);
        event.rows = choices.number(max_position);
        break;
      }
      event.kind = Event::Kind::frames;
      event.count = std::min(choose_border(choices, step, size + spec.right), room);
      break;
    case Event::Kind::frames:
      event.count = std::min(choices.number(most_bodies * step), room);
      break;
    case Event::Kind::size: event = choose_size(choices, spec, size); break;
    case Event::Kind::gap:
      event.cause = static_cast<Cause>(choices.byte() % 6);
      event.count = std::min(1 + choices.number(max_position), room);
      if (event.count == 0) event = {.kind = Event::Kind::end};
      break;
    case Event::Kind::reset: event.cause = static_cast<Cause>(choices.byte() % 6); break;
    case Event::Kind::flush:
      if (const std::uint8_t mark = choices.byte(); mark > 0) event.mark = mark;
      break;
    default: break;
  }
  return event;
}

// Appends events, the last of which ends the stream.
void choose_events(Choices& choices, const Spec& spec, std::vector<Event>& events) {
  std::uint64_t position = 0, size = spec.size;
  const auto ended = [&] {
    return !events.empty() &&
           (events.back().kind == Event::Kind::end || events.back().kind == Event::Kind::abort);
  };
  while (!choices.empty() && events.size() < most_events && !ended()) {
    const Event event = choose_event(choices, spec, position, size, events.empty());
    if (event.kind == Event::Kind::size) size = event.count;
    if (event.kind == Event::Kind::open || event.kind == Event::Kind::frames ||
        event.kind == Event::Kind::gap)
      position += event.count;
    events.push_back(event);
  }
  if (!ended()) events.push_back({.kind = Event::Kind::end});
}

// The same events, with consecutive frames events merged into one.
void merge(const std::vector<Event>& events, std::vector<Event>& merged) {
  for (const Event& event : events) {
    if (event.kind == Event::Kind::frames && !merged.empty() &&
        merged.back().kind == Event::Kind::frames)
      merged.back().count += event.count;
    else
      merged.push_back(event);
  }
}

struct Expected {
  ReferenceChunker::Columns columns;
  ResetReason reason;
  std::optional<std::uint64_t> mark;
};

// The contract has no reasons and marks: they are added here.
ResetReason reason_of(const Event& event) {
  if (event.kind == Event::Kind::reset)
    return event.cause == Cause::endpoint ? ResetReason::endpoint : ResetReason::client;
  return event.cause == Cause::load ? ResetReason::overflow : ResetReason::gap;
}

void expect(const Spec& spec, const std::vector<Event>& events, std::vector<Expected>& rows) {
  ReferenceChunker reference(spec);
  ResetReason reason = events.front().opened_anew() ? ResetReason::failover : ResetReason::start;
  for (const Event& event : events) {
    reference.event(event);
    while (rows.size() < reference.rows().size()) {
      const auto& columns = reference.rows()[rows.size()];
      const bool reset = (columns[5] & flag::reset) != 0;
      rows.push_back({columns, reset ? reason : ResetReason::none, {}});
    }
    if (event.kind == Event::Kind::flush) rows.back().mark = event.mark;
    if (event.kind == Event::Kind::reset || event.kind == Event::Kind::gap)
      reason = reason_of(event);
  }
}

// A chunker whose rows must be the expected ones, however its frames are split into events.
class Checked {
 public:
  Checked(const Spec& spec, std::uint32_t width, const std::vector<Expected>& rows)
      : chunker_(spec), spec_(spec), width_(width), expected_(rows) {}

  void add(const Event& event) {
    const bool frames = event.kind == Event::Kind::frames;
    const std::uint64_t until = chunker_.frames_until_next();
    const std::size_t before = given_;
    require(until > 0, "no row is ready after all were read");
    chunker_.add(event);
    while (const auto row = chunker_.next()) check(*row);
    if (!frames) return;
    require((given_ > before) == (event.count >= until), "frames_until_next make a row");
    require(event.count > until || given_ <= before + 1, "and no second one");
  }

  void end() const {
    require(chunker_.ended() && given_ == expected_.size(), "the stream ends with its last row");
  }

 private:
  void check(const Row& row) {
    require(given_ < expected_.size(), "no row too many");
    const Expected& expected = expected_[given_++];
    const ReferenceChunker::Columns columns{row.seq,   row.begin, row.left, row.size,
                                            row.right, row.flags, row.gap};
    require(columns == expected.columns, "a row equals that of the contract");
    require(row.reason == expected.reason, "a reset has the reason of the last one");
    require(row.mark == expected.mark, "a flush's mark is on the last row of its segment");
    require(row.window_begin() >= kept_, "no row has a frame before keep_from()");
    require(chunker_.keep_from() >= kept_, "keep_from() never decreases");
    kept_ = chunker_.keep_from();
    require(kept_ <= chunker_.position(), "keep_from() is at most the position");
    if (row.has_frames()) check_layout(row);
  }

  void check_layout(const Row& row) const {
    const RowLayout body = row_layout(row, {.spec = spec_, .align = Align::body}, width_);
    const RowLayout packed = row_layout(row, {.spec = spec_, .align = Align::packed}, width_);
    require(body.lead + row.left == spec_.left, "a body begins at its column");
    require(packed.lead == 0, "a packed window begins at column 0");
    for (const RowLayout& layout : {body, packed})
      require(layout.lead + row.window() + layout.trail == width_, "all columns are laid out");
  }

  Chunker chunker_;
  const Spec& spec_;
  const std::uint32_t width_;
  const std::vector<Expected>& expected_;
  std::size_t given_ = 0;
  std::uint64_t kept_ = 0;
};

// Reused for each input, to avoid allocations.
struct Stream {
  std::vector<Event> events, merged;
  std::vector<Expected> rows;
};

void cut(const Spec& spec, Stream& stream) {
  std::uint32_t size = 0;
  std::uint64_t frames = 0;
  for (const Event& event : stream.merged) {
    if (event.kind == Event::Kind::size)
      size = std::max(size, static_cast<std::uint32_t>(event.count));
    if (event.kind == Event::Kind::frames) frames += event.count;
  }
  const std::uint32_t width = width_for(spec, size);

  for (const auto* events : {&stream.events, &stream.merged}) {
    Checked chunker(spec, width, stream.rows);
    for (const Event& event : *events) chunker.add(event);
    chunker.end();
  }
  if (frames > 1000) return;
  Checked chunker(spec, width, stream.rows);
  for (const Event& event : stream.merged) {
    if (event.kind != Event::Kind::frames) chunker.add(event);
    for (std::uint64_t n = event.kind == Event::Kind::frames ? event.count : 0; n > 0; --n)
      chunker.add({.kind = Event::Kind::frames, .count = 1});
  }
  chunker.end();
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  static Stream stream;
  Choices choices(bytes, size);
  const Spec spec = choose_spec(choices);
  if (!spec.check()) return 0;
  stream.events.clear();
  stream.merged.clear();
  stream.rows.clear();
  choose_events(choices, spec, stream.events);
  merge(stream.events, stream.merged);
  expect(spec, stream.merged, stream.rows);
  cut(spec, stream);
  return 0;
}
