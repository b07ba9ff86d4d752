// SPDX-License-Identifier: Apache-2.0
// Chooses a client's format and a pipeline's frames, and converts the rest of the input twice,
// split differently: both must give the same frames, and none that is not finite. Opus packets are
// whole.
#include <algorithm>
#include <cmath>
#include <vector>

#include "input/input_converter.h"
#include "tests/fuzz/target.h"
#include "tests/support/bytes.h"

namespace millrace {
namespace {

using fuzz::Choices;
using fuzz::require;

constexpr double rates[] = {8000, 11025, 15999, 16000, 44100, 48000, 192000};
constexpr double pipeline_rates[] = {8000, 16000, 44100, 48000};
constexpr std::size_t most_bytes = 4096;  // of a message

template <class Values>
auto choose(Choices& choices, const Values& values) {
  return values[choices.byte() % std::size(values)];
}

struct Formats {
  ClientFormat from;
  FrameType to;
};

Formats choose_formats(Choices& choices) {
  using enum SampleFormat;
  static constexpr SampleFormat of_audio[] = {s16le, s24le, f32le, mulaw, alaw, opus};
  static constexpr Element elements[] = {Element::s16, Element::f32, Element::f16};
  Formats formats;
  auto& [from, to] = formats;
  from.format = choose(choices, of_audio);
  from.rate = choose(choices, rates);
  from.values = 1 + choices.byte() % (from.format == opus ? 2 : 5);
  to.element = choose(choices, elements);
  to.rate = choose(choices, pipeline_rates);
  to.values = from.values;
  if (const std::uint8_t choice = choices.byte() % 3; choice > 0) {
    to.values = 1;
    from.channel = choice == 1 ? ChannelChoice(OneChannel{choices.byte() % from.values})
                               : ChannelChoice(MeanOfChannels{});
  }
  return formats;
}

class Kept : public FrameSink {
 public:
  Kept(const FrameType& type, std::size_t piece) : frame_(type.bytes()), piece_(piece) {}

  MutableBytes writable(std::size_t frames) override {
    require(frames > 0, "there is a frame to write");
    memory_.resize(std::min(frames, piece_) * frame_);
    return memory_;
  }
  void append(std::size_t frames) override {
    require(frames * frame_ <= memory_.size(), "the frames fit into the memory");
    bytes.insert(bytes.end(), memory_.begin(),
                 memory_.begin() + static_cast<std::ptrdiff_t>(frames * frame_));
  }
  std::uint64_t count() const { return bytes.size() / frame_; }

  std::vector<std::byte> bytes;

 private:
  const std::size_t frame_, piece_;
  std::vector<std::byte> memory_;
};

// A stream of one client: gaps, drains and messages. Its positions are checked.
class Client {
 public:
  Client(const Formats& formats, std::size_t piece)
      : frames_(formats.to, piece), to_(formats.to), converter_(formats.from, formats.to) {}

  // Splits the message into pieces of `piece` bytes.
  void send(Bytes message, std::size_t piece) {
    while (!message.empty()) {
      const Bytes part = message.first(std::min(piece, message.size()));
      message = message.subspan(part.size());
      convert(part);
    }
  }

  void drain() {
    converter_.drop_partial();
    converter_.drain(drained_, frames_);
    drained_ += run_;
    run_ = 0;
    require(frames_.count() + lost_ == position(drained_), "the position after a drain is exact");
  }

  const std::vector<std::byte>& frames() const { return frames_.bytes; }
  bool failed() const { return failed_; }

 private:
  std::uint64_t position(std::uint64_t frames) const {
    return frames * static_cast<std::uint64_t>(to_.rate) /
           static_cast<std::uint64_t>(converter_.input_rate());
  }

  void convert(Bytes part) {
    const std::uint64_t most = converter_.most_input_frames(part.size()), before = frames_.count();
    const auto converted = converter_.convert(part, frames_);
    require(converted.input_frames <= most, "a message has no more frames than it may have");
    require(converted.appended == frames_.count() - before, "the appended frames are counted");
    if (converted.fault == InputConverter::Fault::none) {
      run_ += converted.input_frames;
      require(frames_.count() + lost_ <= position(drained_ + run_), "no frame is early");
      return;
    }
    failed_ = true;
    require(converted.appended == 0, "nothing of a rejected message is appended");
    drain();
    drained_ += converted.input_frames;
    lost_ = position(drained_) - frames_.count();
  }

  Kept frames_;
  const FrameType to_;
  InputConverter converter_;
  std::uint64_t drained_ = 0, run_ = 0;  // frames of the client before the run, and in it
  std::uint64_t lost_ = 0;               // frames of the pipeline
  bool failed_ = false;
};

void require_finite(const std::vector<std::byte>& frames, Element element) {
  if (element != Element::f32) return;
  for (const float value : test::values_of<float>(frames))
    require(std::isfinite(value), "all frames are finite");
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  Choices choices(bytes, size);
  const Formats formats = choose_formats(choices);
  const bool opus = formats.from.format == SampleFormat::opus;
  const std::size_t piece = opus ? most_bytes : 1 + choices.byte();
  Client whole(formats, 1000), split(formats, 1 + choices.byte());
  for (int messages = 0; messages < 32 && !choices.empty(); ++messages) {
    std::vector<std::byte> message(choices.number(most_bytes));
    for (std::byte& byte : message) byte = static_cast<std::byte>(choices.byte());
    whole.send(message, most_bytes);
    split.send(message, piece);
    if (choices.byte() % 4 > 0) continue;
    whole.drain();
    split.drain();
  }
  whole.drain();
  split.drain();
  // A message that is rejected loses other frames than its pieces do.
  if (opus || !whole.failed())
    fuzz::require(whole.frames() == split.frames(), "splits change nothing");
  require_finite(whole.frames(), formats.to.element);
  require_finite(split.frames(), formats.to.element);
  return 0;
}
