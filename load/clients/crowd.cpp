// SPDX-License-Identifier: Apache-2.0
#include "load/clients/crowd.h"

#include <algorithm>
#include <utility>

namespace millrace::load {

namespace {

using namespace std::chrono_literals;

// As many as a backlog holds several times over.
constexpr std::size_t most_opening = 256;
// A client connects before it has something to say.
constexpr Duration head_start = 20ms;
constexpr Duration refused_pause = 1s;
// Without any stream that opens or is refused.
constexpr Duration opening_patience = 10s;

}  // namespace

Crowd::Crowd(const RunFacts& run, std::uint32_t offset, std::uint32_t stride, ClientDoor& door)
    : run_(run),
      offset_(offset),
      stride_(stride),
      door_(door),
      places_((run.schedule.plan().streams - offset + stride - 1) / stride),
      to_open_(offset),
      packet_(run.content.packet_bytes()),
      outcome_(run.schedule) {}

bool Crowd::go_on_opening(Time now) {
  const std::uint32_t streams = run_.schedule.plan().streams;
  if (progress_ == Time::max()) progress_ = now;
  if (now - progress_ > opening_patience) refuse_opening(now);
  for (; to_open_ < streams && opening_ < most_opening; to_open_ += stride_) open(to_open_, 0);
  return to_open_ < streams || opening_ > 0;
}

void Crowd::refuse_opening(Time now) {
  for (std::uint32_t place = offset_; place < to_open_; place += stride_) {
    if (at(place).state != State::opening) continue;
    door_.vanish(place);
    refused(place, "no answer", now);
  }
}

std::uint64_t Crowd::sent(const Place& place) const {
  return (place.next - place.first) * run_.content.packet_frames();
}

void Crowd::open(std::uint32_t place, std::uint64_t first) {
  const std::uint64_t packets = run_.schedule.packets_of_life(place, first);
  at(place) = {.state = State::opening, .first = first, .next = first, .last = first + packets};
  ++opening_;
  ++live_;
  door_.open(place, stream_name(run_.name, {place, first}));
}

void Crowd::opened(std::uint32_t place, Time now) {
  --opening_;
  progress_ = now;
  ++outcome_.opened;
  at(place).state = State::open;
  at(place).opened = now;
  // Before the start the schedule does not know when: go_on() looks at it as soon as it does.
  turns_.push({Time::min(), place});
}

void Crowd::refused(std::uint32_t place, std::string_view why, Time now) {
  --opening_;
  --live_;
  progress_ = now;
  ++outcome_.refused[std::string(why)];
  at(place).state = State::none;
  if (run_.schedule.plan().life) turns_.push({now + refused_pause, place});
}

std::optional<Time> Crowd::go_on(Time now) {
  while (!turns_.empty() && turns_.top().first <= now) {
    const std::uint32_t place = turns_.top().second;
    turns_.pop();
    take_turn(place, now);
  }
  const Time last = run_.schedule.last();
  if (live_ == 0 && now >= last) return std::nullopt;
  if (!turns_.empty()) return turns_.top().first;
  return now < last ? last : now + refused_pause;
}

void Crowd::take_turn(std::uint32_t place, Time now) {
  Place& it = at(place);
  if (it.state == State::none) {
    if (!run_.schedule.plan().life) return;  // it ended unasked
    const std::uint64_t first = run_.schedule.first_from(place, now + head_start);
    if (run_.schedule.due(place, first) < run_.schedule.last()) open(place, first);
    return;
  }
  if (it.state != State::open) return;
  const Time due = run_.schedule.due(place, it.next);
  if (due > now) return turns_.push({due, place});
  run_.content.write(place, it.next, packet_);
  // What waits for the service to open it, or to take more, is not our lateness.
  if (!std::exchange(it.late, true) && due >= it.opened) outcome_.lateness.add(due, Clock::now());
  if (!door_.send(place, packet_)) return;  // has_room() follows
  it.late = false;
  ++outcome_.packets;
  ++it.next;
  const Time next = run_.schedule.due(place, it.next);
  if (it.next == it.last || next >= run_.schedule.last()) return finish(place, now);
  turns_.push({next, place});
}

void Crowd::finish(std::uint32_t place, Time now) {
  Place& it = at(place);
  if (it.next == it.last && run_.schedule.vanishes(place, it.first)) {
    if (run_.schedule.counts(now)) outcome_.vanishings[stream_of(place)] = Clock::now();
    door_.vanish(place);
    ++outcome_.vanished;
    return over(place, now);
  }
  it.state = State::ending;
  door_.end(place);
}

void Crowd::over(std::uint32_t place, Time now) {
  if (at(place).state == State::opening) --opening_;
  at(place).state = State::none;
  --live_;
  if (run_.schedule.plan().life && now < run_.schedule.last()) turns_.push({now, place});
}

void Crowd::has_room(std::uint32_t place) {
  if (at(place).state == State::open) turns_.push({Time::min(), place});
}

void Crowd::told(std::uint32_t place, const Told& result, Time now) {
  Place& it = at(place);
  ++outcome_.answered;
  if (result.failed) ++outcome_.failed;
  if (result.seq < it.seq || result.begin < it.begin) {
    ++outcome_.repeated;
    return;
  }
  if (result.end < result.begin || result.end > sent(it)) {
    ++outcome_.wrong;
    return;
  }
  if (run_.answered && !result.failed) {
    write_answer(answer_, stream_of(place), result.begin);
    if (result.data != answer_) ++outcome_.wrong;
  }
  it.seq = result.seq + 1;
  it.begin = result.begin;
  it.gap = it.gap || result.gap;
  if (result.end == result.begin) return;  // a marker row is due when its cause is
  ++it.begin;                              // bodies may overlap, but do not begin at the same frame
  ++it.answered;
  const std::uint64_t packet = it.first + (result.end - 1) / run_.content.packet_frames();
  outcome_.results.add(run_.schedule.due(place, packet), now);
}

void Crowd::rejected(std::uint32_t place, std::uint64_t frames) {
  at(place).rejected += frames;
  outcome_.shed += frames;
}

void Crowd::closed(std::uint32_t place, std::uint64_t frames, std::uint64_t rows, Time now) {
  const Place& it = at(place);
  if (it.state != State::ending) return broken(place, "it was closed before its end", now);
  ++outcome_.ended;
  const std::uint64_t sent = this->sent(it);
  const std::uint64_t wanted = sent - std::min(sent, it.rejected);
  const std::uint64_t had = std::min(wanted, frames);
  outcome_.frames_ended += sent;
  // How many frames a gap lost no result says.
  (it.gap ? outcome_.shed : outcome_.lost) += wanted - had;
  outcome_.lost += frames - had;
  outcome_.unanswered += rows - std::min(rows, it.answered);
  over(place, now);
}

void Crowd::broken(std::uint32_t place, std::string_view why, Time now) {
  ++outcome_.broken;
  if (outcome_.why.empty()) outcome_.why = why;
  over(place, now);
}

void Crowd::give_up(Time now) {
  for (std::uint32_t place = offset_; place < to_open_; place += stride_) {
    if (at(place).state == State::none) continue;
    door_.vanish(place);
    broken(place, "it was not closed in time", now);
  }
}

}  // namespace millrace::load
