// SPDX-License-Identifier: Apache-2.0
#include "input/input_converter.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <variant>
#include <vector>

#include "input/channels.h"
#include "input/opus_packets.h"
#include "input/resampled_run.h"
#include "input/value_kernels.h"

namespace millrace {
namespace {

// The format of the bytes that are decoded: those of the client, or the floats of Opus packets.
ClientFormat decoded_format(ClientFormat from, const FrameType& to) {
  if (from.format == SampleFormat::opus) {
    from.format = SampleFormat::f32le;
    from.rate = OpusPackets::rate_for(to.rate);
  }
  if (from.values == 1) from.channel = AllChannels{};
  return from;
}

}  // namespace

class InputConverter::Stages {
 public:
  Stages(const ClientFormat& client, const FrameType& to)
      : from_(decoded_format(client, to)),
        client_frame_(size_of(from_.format) * from_.values),
        to_(to),
        block_(std::max<std::size_t>(1, most_values / std::max(from_.values, to.values))) {
    if (client.format == SampleFormat::opus)
      opus_.emplace(static_cast<std::uint32_t>(from_.rate), from_.values);
    if (!std::holds_alternative<AllChannels>(from_.channel))
      one_.emplace(from_, !changes_rate() && to.element == Element::s16);
    assert(to.values == (one_ ? 1 : from_.values));
    const SampleFormat format = one_ ? one_->format() : from_.format;
    if (changes_rate()) {
      run_.emplace(
          Rates{static_cast<std::uint32_t>(from_.rate), static_cast<std::uint32_t>(to.rate)}, to);
      decode_ = value_kernel_for_resampling(format);
    } else {
      decode_ = value_kernel(format, to.element);
    }
  }

  double input_rate() const { return from_.rate; }
  bool has_partial() const { return !partial_.empty(); }
  void drop_partial() { partial_.clear(); }

  std::uint64_t most_input_frames(std::size_t bytes) const {
    return opus_ ? opus_->most_frames() : whole_frames(bytes);
  }
  std::uint64_t lost_input_frames(std::uint64_t client_frames) const {
    return opus_ ? client_frames * opus_->frames_of_packet() : client_frames;
  }

  std::size_t piece(Bytes message) {
    const std::size_t frames =
        changes_rate() ? resampled_piece / to_.values : copied_piece / client_frame_;
    const std::size_t bytes = std::max<std::size_t>(1, frames) * client_frame_;
    return opus_ || message.size() <= bytes || !is_finite(message) ? message.size() : bytes;
  }

  Converted convert(Bytes message, FrameSink& to) {
    return opus_ ? convert_packet(message, to) : convert_bytes(message, to);
  }

  Appended drain(std::uint64_t before, FrameSink& to) {
    if (opus_) opus_->begin_anew();
    return run_ ? run_->drain(before, to) : Appended{};
  }

 private:
  static constexpr std::size_t most_values = ResampledRun::most_values;
  static constexpr std::size_t resampled_piece = 1024;    // values after the choice of channels
  static constexpr std::size_t copied_piece = 16 * 1024;  // bytes
  static_assert(most_values <= OneOfChannels::most_values);
  using Scratch = std::array<std::byte, most_values * sizeof(float)>;

  bool changes_rate() const { return from_.rate != to_.rate; }
  std::uint64_t whole_frames(std::size_t bytes) const {
    return (partial_.size() + bytes) / client_frame_;
  }

  Converted convert_packet(Bytes packet, FrameSink& to) {
    if (packet.empty()) return {};
    OpusPackets::Decoded memory;
    const auto decoded = opus_->decode(packet, memory);
    if (!decoded) return {.fault = Fault::bad_packet, .input_frames = opus_->frames_of_packet()};
    return converted(std::as_bytes(*decoded), to);
  }

  // True if every frame that the message completes is finite. partial_ has room for one frame.
  bool is_finite(Bytes message) {
    const std::size_t before = partial_.size();
    const std::size_t missing = has_partial() ? client_frame_ - before : 0;
    if (message.size() < missing) return true;
    const Bytes first = message.first(missing);
    const std::size_t whole = (message.size() - missing) / client_frame_ * client_frame_;
    partial_.insert(partial_.end(), first.begin(), first.end());
    const bool finite = all_finite(from_.format, partial_);
    partial_.resize(before);
    return finite && all_finite(from_.format, message.subspan(missing, whole));
  }

  Converted convert_bytes(Bytes message, FrameSink& to) {
    const std::size_t missing = has_partial() ? client_frame_ - partial_.size() : 0;
    if (message.size() < missing) return keep(message);
    const Bytes first = message.first(missing);
    const std::size_t whole = (message.size() - missing) / client_frame_ * client_frame_;
    const Bytes others = message.subspan(missing, whole);
    partial_.insert(partial_.end(), first.begin(), first.end());
    Converted total;
    if (all_finite(from_.format, partial_) && all_finite(from_.format, others)) {
      total = converted(partial_, to);
      const Converted rest = converted(others, to);
      total.appended += rest.appended;
      total.clamped += rest.clamped;
    } else {
      total.fault = Fault::not_finite;
    }
    total.input_frames = (partial_.size() + whole) / client_frame_;
    partial_.clear();
    keep(message.subspan(missing + whole));
    return total;
  }

  Converted keep(Bytes rest) {
    if (rest.empty()) return {};
    partial_.reserve(client_frame_);
    partial_.insert(partial_.end(), rest.begin(), rest.end());
    return {};
  }

  // Whole frames with finite values.
  Converted converted(Bytes frames, FrameSink& to) {
    const std::uint64_t count = frames.size() / client_frame_;
    const Appended appended =
        one_ || run_ ? append_blocks(frames, to) : append(frames.data(), count, to);
    return {.input_frames = count, .appended = appended.frames, .clamped = appended.clamped};
  }

  Appended append_blocks(Bytes frames, FrameSink& to) {
    Scratch selected;
    Appended total;
    while (!frames.empty()) {
      const std::size_t count = std::min(block_, frames.size() / client_frame_);
      const std::byte* values = frames.data();
      if (one_) {
        one_->apply(values, selected.data(), count);
        values = selected.data();
      }
      total += run_ ? resample(values, count, to) : append(values, count, to);
      frames = frames.subspan(count * client_frame_);
    }
    return total;
  }

  Appended resample(const std::byte* values, std::size_t frames, FrameSink& to) {
    std::array<float, most_values> floats;
    const std::uint64_t clamped =
        decode_(values, reinterpret_cast<std::byte*>(floats.data()), frames * to_.values);
    Appended total = run_->append(floats.data(), frames, to);
    total.clamped += clamped;
    return total;
  }

  Appended append(const std::byte* values, std::size_t frames, FrameSink& to) {
    const std::size_t frame = one_ ? size_of(one_->format()) : client_frame_;
    Appended total{.frames = frames};
    while (frames > 0) {
      const MutableBytes writable = to.writable(frames);
      const std::size_t count = writable.size() / to_.bytes();
      total.clamped += decode_(values, writable.data(), count * to_.values);
      to.append(count);
      values += count * frame;
      frames -= count;
    }
    return total;
  }

  const ClientFormat from_;         // the format of the bytes that are decoded
  const std::size_t client_frame_;  // bytes of a frame of from_
  const FrameType to_;
  const std::size_t block_;           // frames
  std::optional<OpusPackets> opus_;   // if packets come before from_
  std::optional<OneOfChannels> one_;  // if one channel is made of several
  std::optional<ResampledRun> run_;   // if the rate changes
  ValueKernel decode_ = nullptr;      // to floats if the rate changes, else to frames
  std::vector<std::byte> partial_;    // less than a frame between messages
};

InputConverter::InputConverter(const ClientFormat& from, const FrameType& to)
    : stages_(std::make_unique<Stages>(from, to)) {}

InputConverter::~InputConverter() = default;

double InputConverter::input_rate() const { return stages_->input_rate(); }

std::uint64_t InputConverter::most_input_frames(std::size_t bytes) const {
  return stages_->most_input_frames(bytes);
}

InputConverter::Converted InputConverter::convert(Bytes message, FrameSink& to) {
  return stages_->convert(message, to);
}

std::size_t InputConverter::piece_of_long(Bytes message) const { return stages_->piece(message); }

Appended InputConverter::drain(std::uint64_t before, FrameSink& to) {
  return stages_->drain(before, to);
}

std::uint64_t InputConverter::lost_input_frames(std::uint64_t client_frames) const {
  return stages_->lost_input_frames(client_frames);
}

bool InputConverter::has_partial() const { return stages_->has_partial(); }

void InputConverter::drop_partial() { stages_->drop_partial(); }

}  // namespace millrace
