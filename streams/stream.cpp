// SPDX-License-Identifier: Apache-2.0
#include "streams/stream.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

namespace millrace {
namespace {

using Kind = Event::Kind;

// The one place where the client's frames become the pipeline's, and room for these room for those.
// A frame of either is all channels, or one vector, in whatever format, and their rates are equal;
// where they are not, this becomes the difference of the stream's totals, so that rounding never
// adds up, and room is rounded down.
std::uint64_t pipeline_frames(std::uint64_t client_frames) { return client_frames; }
std::uint64_t client_frames(std::uint64_t pipeline_frames) { return pipeline_frames; }

constexpr std::string_view too_far = "positions end at 2^53";

StreamClosing closing_for(ErrorCode code) {
  if (code == ErrorCode::idle) return StreamClosing::idle;
  if (code == ErrorCode::no_worker) return StreamClosing::no_worker;
  return StreamClosing::error;
}

}  // namespace

Stream::Stream(const StreamSettings& settings, const StreamLinks& links)
    : settings_(settings),
      links_(links),
      converter_(settings.format, settings.type),
      buffer_(links.blocks, settings.type.bytes()),
      backlog_(links.blocks, settings.type.bytes()),
      waiting_(settings.shed_after.value_or(Duration{}) / shed_grains),
      chunker_(settings.spec),
      unwritten_(links.stats) {
  assert(settings.frames_limit >= settings.spec.width());
  chunker_.add({.kind = Kind::open});
  has_room_ = room() > 0;
  links_.stats.opened.add();
  links_.stats.open.add(1);
}

void Stream::frames(Bytes message, Time now) {
  if (!takes_input()) return;
  const std::size_t count = converter_.whole_frames(message.size());
  if (!has_room_for(count)) return fail(ErrorCode::values, too_far, now);
  FrameBuffer& buffer = settings_.shed_after && !waiting_.empty() ? backlog_ : buffer_;
  const std::uint64_t begin = buffer.end();
  while (buffer.end() < begin + count) {
    const MutableBytes room = buffer.room(begin + count - buffer.end());
    converter_.convert(message, room);
    buffer.append(room.size() / settings_.type.bytes());
  }
  const FrameConverter::Findings found = converter_.finish(message);
  if (!found.finite) {
    buffer.truncate(begin);
    links_.client.rejected(ErrorCode::values, "a value is NaN or infinite", count);
    return lose(count, Cause::rejected, now);
  }
  if (count == 0) return;
  links_.stats.frames.add(count);
  links_.stats.clamped.add(found.clamped);
  if (clamps_.add(count, found.clamped)) links_.client.warning(ErrorCode::values, clamps_.message);
  position_ += count;
  waiting_.push({.kind = Kind::frames, .count = count}, now);
  settle(now);
}

void Stream::flush(std::optional<std::uint64_t> mark, Time now) {
  if (!takes_input()) return;
  waiting_.push({.kind = Kind::flush, .mark = mark}, now);
  settle(now);
}

void Stream::reset(Time now) {
  if (!takes_input()) return;
  waiting_.push({.kind = Kind::reset}, now);
  settle(now);
}

void Stream::gap(std::uint64_t client_frames, Time now) {
  if (!takes_input()) return;
  if (client_frames == 0)
    return links_.client.rejected(ErrorCode::schema, "a gap has at least one frame", 0);
  reject_partial();
  lose(pipeline_frames(client_frames), Cause::client, now);
}

void Stream::refuse(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                    Time now) {
  if (!takes_input()) return;
  const std::uint64_t frames = pipeline_frames(client_frames);
  if (has_room_for(frames)) links_.client.rejected(code, message, frames);
  lose(frames, Cause::rejected, now);
}

void Stream::end(Time now) {
  if (input_ != Input::open) return;
  reject_partial();
  close_input(Input::ended, {.kind = Kind::end}, now);
}

void Stream::drain(Time now) {
  if (input_ == Input::open) closing_ = StreamClosing::drain;
  close_input(Input::over, {.kind = Kind::end, .cause = Cause::drain}, now);
}

void Stream::left(Time now) {
  deafen(StreamClosing::end);
  unwritten_.drop(loss_);
  close_input(Input::over, {.kind = Kind::end}, now);
}

void Stream::lost(Time now) {
  deafen(StreamClosing::client_gone);
  unwritten_.drop(loss_);
  abort(now);
}

void Stream::fail(ErrorCode code, std::string_view message, Time now) {
  if (client_listens_) links_.client.error(code, message);
  if (code == ErrorCode::slow_reader) loss_ = ResultLoss::slow_reader;
  deafen(closing_for(code));
  abort(now);
}

void Stream::evict(ErrorCode code, std::string_view message, Time now) {
  if (input_ == Input::open) {  // otherwise its end waits there, and nothing comes to it
    waiting_.clear();
    buffer_.truncate(buffer_.end() - unfed());
    backlog_.release(backlog_.end());
  }
  fail(code, message, now);
}

void Stream::dropped(std::optional<ErrorCode> code, Time now) {
  if (finished_) return;
  if (code) {
    const bool waited = *code == ErrorCode::no_worker;
    if (client_listens_)
      links_.client.error(
          *code, waited ? "no worker came in time" : "workers were lost over two of its rows");
    deafen(closing_for(*code));
  }
  client_listens_ = false;
  waiting_.clear();
  rows_.clear();
  finish(now);
}

bool Stream::takes_input() {
  if (input_ == Input::ended && client_listens_)
    links_.client.rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  return input_ == Input::open;
}

// A frame of which only a part came does not continue behind what follows.
void Stream::reject_partial() {
  if (!converter_.has_partial()) return;
  converter_.drop_partial();
  links_.client.rejected(ErrorCode::values, "not a whole number of frames", 0);
}

bool Stream::has_room_for(std::uint64_t frames) const { return frames <= max_position - position_; }

void Stream::lose(std::uint64_t frames, Cause cause, Time now) {
  if (frames == 0) return;
  if (!has_room_for(frames)) return fail(ErrorCode::values, too_far, now);
  links_.stats.lost[cause == Cause::rejected ? Loss::rejected : Loss::gap].add(frames);
  position_ += frames;
  waiting_.push({.kind = Kind::gap, .cause = cause, .count = frames}, now);
  settle(now);
}

// Takes its place behind what waits. The first end stands.
void Stream::close_input(Input how, const Event& event, Time now) {
  if (input_ == Input::open) waiting_.push(event, now);
  input_ = how;
  settle(now);
}

// A lane forgets an aborted stream that no worker has had a row of, with all its rows: it is to
// hear of the abort at once, not when a worker has come and taken what stands before it.
void Stream::abort(Time now) {
  if (input_ == Input::open && !rows_.begun()) {
    waiting_.clear();
    cuts_all_ = true;
  }
  close_input(Input::over, {.kind = Kind::abort, .cause = Cause::connection}, now);
}

void Stream::deafen(StreamClosing why) {
  if (client_listens_) closing_ = why;
  client_listens_ = false;
}

void Stream::settle(Time now) {
  if (finished_) return;
  measure_pause(now);
  if (all_done_ && (!client_listens_ || unwritten_.empty())) return finish(now);
  if (settings_.shed_after) shed(now);
  cut_rows(now);
  buffer_.release(rows_.first_needed(keep_));
  update_pause();
}

// What one message brought and did not become rows stands at the end of the buffer, as the first
// frames that wait: it is shed as a whole or not at all.
void Stream::shed(Time now) {
  const Duration wait = *settings_.shed_after + *settings_.shed_after / shed_grains;
  const std::uint64_t frames = waiting_.shed(now - wait);
  if (frames == 0) return;
  const std::uint64_t unseen = unfed();
  assert(unseen <= frames);
  buffer_.truncate(buffer_.end() - unseen);
  backlog_.release(backlog_.end() - backlog_.held() + frames - unseen);
  links_.stats.lost[Loss::overflow].add(frames);
}

void Stream::cut_rows(Time now) {
  while (hands_over()) {
    if (const auto row = chunker_.next()) {
      give(*row, now);
      continue;
    }
    use_up_event();
    if (waiting_.empty()) return;
    feed_chunker();
  }
}

bool Stream::hands_over() {
  if (cuts_all_) return true;
  held_up_ = client_listens_ && links_.client.full();
  return !held_up_ && rows_.ready() < max_ready_rows;
}

// Frames only as far as the next row, so that what is cut stays bounded and each row has the
// instant of its own last frame.
void Stream::feed_chunker() {
  const auto [event, arrived] = waiting_.take(chunker_.frames_until_next());
  arrived_ = arrived;
  if (event.kind == Kind::gap) gap_ = event.count;
  if (event.kind == Kind::frames) fetch(event.count);
  chunker_.add(event);
}

// The chunker is about to see so many more frames: what of them is in the backlog follows the
// others. Rows refer to frames where they stand, so those that may be shed stand elsewhere.
void Stream::fetch(std::uint64_t frames) {
  const std::size_t frame = settings_.type.bytes();
  frames -= std::min(frames, unfed());
  while (frames > 0) {
    const MutableBytes room = buffer_.room(frames);
    const std::size_t count = room.size() / frame;
    const std::uint64_t first = backlog_.end() - backlog_.held();
    std::byte* to = room.data();
    for (const Bytes part : backlog_.window(first, count)) {
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
    buffer_.append(count);
    backlog_.release(first + count);
    frames -= count;
  }
}

// Frames in the buffer that the chunker has not seen.
std::uint64_t Stream::unfed() const {
  return buffer_.end() - (chunker_.position() - skipped_ - gap_);
}

// Rows that a gap cuts lie before it, those that come after it behind it.
void Stream::use_up_event() {
  skipped_ += std::exchange(gap_, 0);
  keep_ = chunker_.keep_from() - skipped_;
}

// Rows at the worker do not count while blocks are scarce: who speaks in real time would fall
// behind by each of their ways there and back.
bool Stream::full() const {
  if (held() >= settings_.frames_limit + pause_frames()) return true;
  const std::uint64_t to_come = buffer_.end() - rows_.first_ready(keep_) + backlog_.held();
  return links_.blocks.scarce() && to_come >= settings_.spec.width();
}

// Without outstanding rows only written() could resume it. If that does not either, less than a
// window is held.
bool Stream::relieved(std::uint64_t at_most) const {
  if (rows_.empty()) return !held_up_;
  if (links_.blocks.scarce() && rows_.ready() > 0) return false;
  return held() <= at_most && waiting_.size() <= WaitingEvents::crowded / 2;
}

void Stream::measure_pause(Time now) {
  if (paused_ && now > settled_) paused_for_ += now - settled_;
  settled_ = now;
}

// Frames above the limit that may be held by now.
std::uint64_t Stream::pause_frames() const {
  const double seconds = std::chrono::duration<double>(paused_for_).count();
  return std::min(settings_.pause_frames,
                  static_cast<std::uint64_t>(2 * settings_.type.rate * seconds));
}

void Stream::update_pause() {
  if (held() <= settings_.frames_limit / 2) paused_for_ = {};
  const bool crowded = waiting_.size() >= WaitingEvents::crowded;
  const bool was = paused_;
  const bool stays = was && !relieved(settings_.frames_limit / 2 + pause_frames());
  paused_ = input_ == Input::open && (was ? stays : full() || crowded);
  if (was && !paused_ && client_listens_) links_.client.resume();
  const bool had_room = std::exchange(has_room_, room() > 0);
  if (!had_room && has_room_ && client_listens_) links_.client.has_room();
}

std::uint64_t Stream::room() const {
  const bool scarce = links_.blocks.scarce();
  const bool sheds = settings_.shed_after && !scarce;
  if (input_ != Input::open || !(sheds || relieved(settings_.frames_limit / 2))) return 0;
  const std::uint64_t limit = settings_.frames_limit;
  const std::uint64_t free = limit - std::min(held(), limit);
  return client_frames(scarce ? std::min(free, limit / 2) : free);
}

}  // namespace millrace
