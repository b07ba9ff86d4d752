// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/slice_order.h"

#include <variant>

namespace millrace::recordings {

using Kind = Event::Kind;
using recording::Slice;

namespace {

bool ends(const Event& event) { return event.kind == Kind::end || event.kind == Kind::abort; }

// After a failed sync the recorder writes the end of the stream again, because it cannot know that
// the disk has it.
bool repeats_end(const recording::StreamTotals& closing, const Slice& slice) {
  return slice.closing == closing && slice.events.empty() &&
         std::holds_alternative<recording::StreamTotals>(*slice.record(0));
}

}  // namespace

void SliceOrder::add(FileNumber file, const std::string& run, std::uint32_t number,
                     const Slice& slice) {
  const auto run_index =
      runs_.try_emplace(run, static_cast<std::uint32_t>(runs_.size())).first->second;
  const auto [place, first] = states_.try_emplace(slice.stream);
  State& state = place->second;
  const auto problem = [&](const char* what) {
    problems_.add(file, slice.stream, slice.begin, what);
    state.from_open = false;
  };
  if (first)
    state.run = run_index;
  else if (state.run != run_index)
    problem("the file is of another run of the service than the stream");
  if (state.closing && !repeats_end(*state.closing, slice))
    problem("a slice follows the end of the stream");
  check_begin(file, state, first, number, slice);
  add_events(file, state, slice);
  state.next_slice = std::uint64_t{number} + 1;
  if (slice.closing) check_totals(file, state, slice);
}

void SliceOrder::check_begin(FileNumber file, State& state, bool first, std::uint32_t number,
                             const Slice& slice) {
  const auto problem = [&](const std::string& what) {
    problems_.add(file, slice.stream, slice.begin, what);
    state.from_open = false;
  };
  if (number < state.next_slice) {
    problem("slice " + std::to_string(number) + " follows slice " +
            std::to_string(state.next_slice - 1));
  } else if (number > state.next_slice && slice.first_event == state.next_event) {
    ++lost_parts_;
    state.lost_answers = true;
  }
  if (slice.first_event < state.next_event) {
    problem("the slice begins with event " + std::to_string(slice.first_event) +
            ", but the stream has " + std::to_string(state.next_event) + " events before it");
  } else if (slice.first_event > state.next_event) {
    const bool declared = slice.lost && slice.lost->first_event <= state.next_event;
    const bool deleted = first && !all_files_;
    if (!declared && !deleted)
      missing(file, state, slice);
    else
      ++lost_parts_;
    state.from_open = false;
  } else if (slice.begin != state.position && slice.first_event > 0) {
    problem("the slice before it ended at position " + std::to_string(state.position));
  } else if (slice.size != state.size) {
    problem("the slice begins with the size " + std::to_string(slice.size) +
            ", but the size in force is " + std::to_string(state.size));
  }
}

void SliceOrder::missing(FileNumber file, State& state, const Slice& slice) {
  const std::uint64_t events = slice.first_event - state.next_event;
  problems_.add(file, slice.stream, state.position,
                counted(events, "event") + (events == 1 ? " is" : " are") +
                    " missing, up to position " + std::to_string(slice.begin));
}

void SliceOrder::add_events(FileNumber file, State& state, const Slice& slice) {
  state.position = slice.begin;
  state.size = slice.size;
  std::uint64_t number = slice.first_event;
  for (const recording::RecordedEvent& timed : slice.events) {
    const Event& event = timed.event;
    if ((event.kind == Kind::open) != (number == 0) || state.ended) {
      problems_.add(file, slice.stream, state.position,
                    "event " + std::to_string(number) +
                        " must not be here: " + std::string(name_of(event.kind)));
      state.from_open = false;
    }
    if (event.kind == Kind::size) state.size = static_cast<std::uint32_t>(event.count);
    if (event.kind == Kind::frames) state.frames += event.count;
    if (event.kind == Kind::gap) state.gaps += event.count;
    if (event.kind == Kind::frames || event.kind == Kind::gap) state.position += event.count;
    state.ended = state.ended || ends(event);
    ++number;
  }
  state.next_event = number;
}

void SliceOrder::check_totals(FileNumber file, State& state, const Slice& slice) {
  state.closing = slice.closing;
  if (!state.from_open) return;
  const auto problem = [&](const std::string& what) {
    problems_.add(file, slice.stream, state.position, what);
    state.from_open = false;
  };
  // A stream that its lanes gave up may have an end, and is not complete.
  if (slice.closing->complete && !state.ended)
    problem("the stream has no end, but its totals say that it has one");
  if (slice.closing->frames != state.frames || slice.closing->lost != state.gaps)
    problem("the totals are " + std::to_string(slice.closing->frames) + " frames and " +
            std::to_string(slice.closing->lost) + " lost, but the stream has " +
            std::to_string(state.frames) + " frames and " + std::to_string(state.gaps) + " lost");
  state.whole = state.from_open && !state.lost_answers && slice.closing->complete;
}

SliceOrder::Counts SliceOrder::counts() const {
  Counts counts{.streams = states_.size(), .lost_parts = lost_parts_};
  for (const auto& [stream, state] : states_)
    if (state.whole) ++counts.whole;
  return counts;
}

std::uint64_t SliceOrder::position(std::uint64_t stream) const {
  const auto state = states_.find(stream);
  return state == states_.end() ? 0 : state->second.position;
}

}  // namespace millrace::recordings
