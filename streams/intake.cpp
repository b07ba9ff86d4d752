// SPDX-License-Identifier: Apache-2.0
#include "streams/intake.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "chunker/chunker.h"
#include "input/opus_packets.h"

namespace millrace {

using Kind = Event::Kind;

class Intake::Sink final : public FrameSink {
 public:
  // Drops the first `skip` frames, and counts them down.
  Sink(FrameBuffer& buffer, std::uint64_t& skip, std::size_t frame_bytes)
      : buffer_(buffer), skip_(skip), frame_bytes_(frame_bytes) {}
  // Memory that was not written returns to the pool.
  ~Sink() { buffer_.truncate(buffer_.end()); }

  MutableBytes writable(std::size_t frames) override { return last_ = buffer_.writable(frames); }
  void append(std::size_t frames) override {
    if (skip_ > 0) frames = drop_first(frames);
    if (frames > 0) buffer_.append(frames);
  }

 private:
  std::size_t drop_first(std::size_t frames) {
    const std::size_t count = std::min<std::uint64_t>(skip_, frames);
    skip_ -= count;
    std::memmove(last_.data(), last_.data() + count * frame_bytes_,
                 (frames - count) * frame_bytes_);
    return frames - count;
  }

  FrameBuffer& buffer_;
  std::uint64_t& skip_;
  const std::size_t frame_bytes_;
  MutableBytes last_;
};

Intake::Intake(const StreamSettings& settings, const StreamLinks& links, ClientOutput& client,
               FrameBuffer& frames, const ResumeSettings* resume)
    : settings_(settings),
      links_(links),
      client_(client),
      frames_(frames),
      backlog_(links.blocks, settings.type.bytes()),
      converter_(settings.format, settings.type),
      counts_(converter_.input_rate(), settings.type.rate),
      resumes_(resume != nullptr),
      skip_(resume ? resume->start.skip : 0),
      pace_(pace_of(settings, links), settings.signal),
      clamps_(settings.type.rate, settings.type.values),
      waiting_(settings.shed_after.value_or(Duration{}) / shed_grains) {
  if (resume) begin_at(*resume);
}

const RateRule& Intake::pace_of(const StreamSettings& settings, const StreamLinks& links) {
  const bool is_opus = settings.format.format == SampleFormat::opus;
  return is_opus && !links.pace.limits() ? opus_pace : links.pace;
}

bool Intake::can_begin(const ClientFormat& format, const FrameType& type, const ResumePoint& at) {
  if (at.begin > max_position || at.frames > max_position || at.skip > at.begin) return false;
  const bool is_opus = format.format == SampleFormat::opus;
  const std::uint32_t opus_rate = OpusPackets::rate_for(type.rate);
  const FrameCounts counts(is_opus ? opus_rate : format.rate, type.rate);
  return counts.position(is_opus ? first_of_packet(at, counts, opus_rate) : at.frames) ==
         at.begin - at.skip;
}

// The number of input frames at this rate before the packet that has the place.
std::uint64_t Intake::first_of_packet(const ResumePoint& at, const FrameCounts& counts,
                                      double rate) {
  const std::uint64_t input = counts.input_frames(at.begin - at.skip);
  return input - input % static_cast<std::uint64_t>(rate / 400);  // multiples of 2.5 ms
}

void Intake::begin_at(const ResumeSettings& resume) {
  const ResumePoint& start = resume.start;
  position_ = start.begin - start.skip;
  input_ = start.frames;
  if (settings_.format.format == SampleFormat::opus) {
    input_ = first_of_packet(start, counts_, converter_.input_rate());
    packets_ = std::make_unique<PacketCounts>(start.frames, input_);
  }
  begin_conversion();
  assert(position_ == counts_.position(input_));
}

bool Intake::add_frames(Bytes message, Time now) {
  if (const std::string warning = containers_.add(message); !warning.empty()) warn(warning);
  const bool apart = goes_apart();
  FrameBuffer& buffer = apart ? backlog_ : frames_;
  const std::uint64_t begin = buffer.end();
  const std::uint64_t to_skip = skip_;
  Sink sink(buffer, skip_, settings_.type.bytes());
  const auto converted = converter_.convert(message, sink);
  if (pace_.counts()) pace_.add(duration_of(converted.input_frames), now);
  if (!in_range(converted.input_frames)) {
    buffer.truncate(begin);
    return false;
  }
  if (converted.fault == InputConverter::Fault::none) {
    input_ += converted.input_frames;
    if (packets_) packets_->add(1, converted.input_frames);
    add_converted({converted.appended, converted.clamped}, to_skip - skip_, apart, now);
  } else {
    reject_values(converted.fault, message, converted.input_frames, now);
  }
  return true;
}

void Intake::warn(std::string_view message) {
  links_.host.warned(settings_.name, message);
  client_.warning(ErrorCode::values, message);
}

void Intake::reject_values(InputConverter::Fault fault, Bytes message, std::uint64_t input_frames,
                           Time now) {
  if (fault == InputConverter::Fault::not_finite)
    return reject_input(ErrorCode::values, "a value is NaN or infinite", 1, input_frames, now);
  std::string text = "not an Opus packet of at most 120 ms";
  if (const std::string_view container = containers_.container(message); !container.empty())
    text += ", but a part of the container " + std::string(container) +
            ": send each packet in it as a message";
  reject_input(ErrorCode::values, text, 1, input_frames, now);
}

Duration Intake::duration_of(std::uint64_t input_frames) const {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(input_frames) / converter_.input_rate()));
}

// The first `skipped` of the frames were dropped.
void Intake::add_converted(const Appended& converted, std::uint64_t skipped, bool apart, Time now) {
  position_ += converted.frames;
  assert(position_ <= counts_.position(input_));
  const Appended added{.frames = converted.frames - skipped, .clamped = converted.clamped};
  if (added.frames == 0) return;
  if (!apart) unfed_ += added.frames;
  links_.stats.frames.add(added.frames);
  links_.stats.clamped.add(added.clamped);
  if (clamps_.add(added.frames, added.clamped)) warn(ClampWatch::message);
  push({.kind = Kind::frames, .count = added.frames}, now);
}

void Intake::drain(Time now) {
  const bool apart = goes_apart();
  const std::uint64_t to_skip = skip_;
  Sink sink(apart ? backlog_ : frames_, skip_, settings_.type.bytes());
  const Appended converted = converter_.drain(drained_, sink);
  add_converted(converted, to_skip - skip_, apart, now);
  begin_conversion();
  assert(position_ == counts_.position(input_));
}

void Intake::begin_conversion() {
  drained_ = input_;
  if (!resumes_ || first_input_at(position_) == input_) return;
  if (!restarts_.empty() && restarts_.back().position == position_) restarts_.pop_back();
  restarts_.push_back(Restart{position_, input_});
}

bool Intake::in_range(std::uint64_t input_frames) const {
  return input_frames <= max_position - input_ &&
         counts_.position(input_ + input_frames) <= max_position;
}

// Requires: in_range(input_frames).
void Intake::lose(std::uint64_t client_frames, std::uint64_t input_frames, Cause cause, Time now) {
  drain(now);
  input_ += input_frames;
  if (packets_) packets_->add(client_frames, input_frames);
  std::uint64_t lost = counts_.position(input_) - position_;
  position_ += lost;
  begin_conversion();
  if (const std::uint64_t skipped = std::min(skip_, lost)) {
    skip_ -= skipped;
    lost -= skipped;
  }
  links_.stats.lost[cause == Cause::rejected ? Loss::rejected : Loss::gap].add(lost);
  push({.kind = lost > 0 ? Kind::gap : Kind::reset, .cause = cause, .count = lost}, now);
}

// Lost packets are as long as the packet before them, so the count has the length of one as factor.
std::optional<std::uint64_t> Intake::lost_input_frames(std::uint64_t client_frames) const {
  std::uint64_t frames = 0;
  const bool overflows =
      __builtin_mul_overflow(client_frames, converter_.lost_input_frames(1), &frames);
  if (overflows || !in_range(frames)) return std::nullopt;
  return frames;
}

bool Intake::add_gap(std::uint64_t client_frames, Time now) {
  const auto frames = lost_input_frames(client_frames);
  if (frames && client_frames > 0) lose(client_frames, *frames, Cause::client, now);
  return frames.has_value();
}

bool Intake::reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                    Time now) {
  const auto frames = lost_input_frames(client_frames);
  if (!frames) return false;
  if (client_frames > 0)
    reject_input(code, message, client_frames, *frames, now);
  else
    client_.rejected(code, message, 0);
  return true;
}

void Intake::reject_input(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                          std::uint64_t input_frames, Time now) {
  const std::uint64_t lost = counts_.position(input_ + input_frames) - counts_.position(input_);
  client_.rejected(code, message, lost);
  lose(client_frames, input_frames, Cause::rejected, now);
}

void Intake::flush(std::optional<std::uint64_t> mark, Time now) {
  push({.kind = Kind::flush, .mark = mark}, now);
}

void Intake::reset(Time now) {
  drain(now);
  push({.kind = Kind::reset}, now);
}

void Intake::end(Cause cause, Time now) {
  drain(now);
  push({.kind = Kind::end, .cause = cause}, now);
}

void Intake::abort(Time now) { push({.kind = Kind::abort, .cause = Cause::connection}, now); }

void Intake::reject_partial_frame() {
  if (!converter_.has_partial()) return;
  converter_.drop_partial();
  client_.rejected(ErrorCode::values, "not a whole number of frames", 0);
}

// A frame of the pipeline begins in the last frame of the input before it.
std::uint64_t Intake::first_input_at(std::uint64_t position) const {
  const std::uint64_t input = position > 0 ? counts_.input_frames(position - 1) + 1 : 0;
  return counts_.position(input) > position ? input - 1 : input;
}

void Intake::locate_converted(ResumePoint& place) const {
  std::uint64_t input = first_input_at(place.begin);
  for (std::size_t i = 0; i < restarts_.size(); ++i)
    if (restarts_[i].position == place.begin) input = restarts_[i].input;
  place.frames = input;
  if (packets_) {
    const auto packet = packets_->at(input);
    place.frames = packet.number;
    input = packet.begin;
  }
  place.skip = place.begin - counts_.position(input);
}

void Intake::forget(std::uint64_t position) {
  while (!restarts_.empty() && restarts_.front().position < position) restarts_.pop_front();
  if (packets_ && position > 0) packets_->forget(counts_.input_frames(position - 1));
}

std::uint64_t Intake::client_frames_within(std::uint64_t frames) const {
  const std::uint64_t most = counts_.input_frames(position_ + frames);
  const std::uint64_t fit = most > input_ ? (most - input_) / longest_frame() : 0;
  if (!pace_.limits()) return fit;
  return std::min(fit, static_cast<std::uint64_t>(pace_.left() / duration_of(longest_frame())));
}

// The waiting frames in frames_ came with one message and are the oldest: they are shed together or
// not at all.
void Intake::shed(Time now) {
  const Duration wait = *settings_.shed_after + *settings_.shed_after / shed_grains;
  const std::uint64_t frames = waiting_.shed(now - wait);
  if (frames == 0) return;
  assert(unfed_ <= frames);
  backlog_.release(backlog_.end() - backlog_.held() + frames - unfed_);
  frames_.truncate(frames_.end() - unfed_);
  unfed_ = 0;
  links_.stats.lost[Loss::overflow].add(frames);
}

void Intake::clear() {
  waiting_.clear();
  frames_.truncate(frames_.end() - unfed_);
  unfed_ = 0;
  backlog_.release(backlog_.end());
}

WaitingEvents::Waiting Intake::take(std::uint64_t frames) {
  const auto next = waiting_.take(frames);
  if (next.event.kind == Kind::frames) fetch(next.event.count);
  return next;
}

// Moves those of the next `frames` that are in the backlog to frames_.
void Intake::fetch(std::uint64_t frames) {
  const std::uint64_t there = std::min(frames, unfed_);
  unfed_ -= there;
  for (frames -= there; frames > 0;) {
    const MutableBytes writable = frames_.writable(frames);
    const std::size_t count = writable.size() / settings_.type.bytes();
    const std::uint64_t first = backlog_.end() - backlog_.held();
    std::byte* to = writable.data();
    for (const Bytes part : backlog_.window(first, count)) {
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
    frames_.append(count);
    backlog_.release(first + count);
    frames -= count;
  }
}

}  // namespace millrace
