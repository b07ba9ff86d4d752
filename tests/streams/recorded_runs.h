// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "input/input_converter.h"
#include "tests/streams/live_stream.h"

namespace millrace::test {

// The frames of a converter in one piece.
class CollectedFrames final : public FrameSink {
 public:
  explicit CollectedFrames(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}
  MutableBytes writable(std::size_t frames) override {
    memory_.resize(frames * frame_bytes_);
    return memory_;
  }
  void append(std::size_t frames) override {
    bytes.insert(bytes.end(), memory_.begin(),
                 memory_.begin() + static_cast<std::ptrdiff_t>(frames * frame_bytes_));
  }

  std::vector<std::byte> bytes;

 private:
  const std::size_t frame_bytes_;
  std::vector<std::byte> memory_;
};

// Random audio in every format, and random packets that an Opus decoder accepts.
class RandomAudio {
 public:
  explicit RandomAudio(std::mt19937& random) : random_(random) {}

  std::uint32_t draw(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[draw(0, static_cast<std::uint32_t>(values.size()) - 1)];
  }

  // A client of a pipeline with `channels` channels.
  ClientFormat format(std::uint32_t channels) {
    ClientFormat format;
    format.format = static_cast<SampleFormat>(draw(0, 6));
    if (format.format == SampleFormat::f16le) format.format = SampleFormat::s16le;
    const bool is_opus = format.format == SampleFormat::opus;
    format.rate = is_opus ? 48'000
                          : one_of({8000u, 11'025u, 16'000u, 22'050u, 24'000u, 44'100u, 48'000u,
                                    96'000u, 192'000u, draw(8000, 192'000)});
    format.values = channels;
    if (channels == 1 && draw(0, 1) == 1) {
      format.values = is_opus ? 2 : draw(1, 5);
      format.channel = draw(0, 1) == 1 ? ChannelChoice(MeanOfChannels{})
                                       : ChannelChoice(OneChannel{draw(0, format.values - 1)});
    }
    return format;
  }

  // `count` frames; for Opus one packet.
  std::vector<std::byte> message(const ClientFormat& format, std::uint32_t count) {
    if (format.format == SampleFormat::opus) return packet();
    std::vector<std::byte> bytes(count * format.values * size_of(format.format));
    if (format.format == SampleFormat::f32le) {
      std::vector<float> values(bytes.size() / 4);
      for (float& value : values) value = static_cast<float>(draw(0, 2'200'000)) / 1e6f - 1.1f;
      return bytes_of(std::span<const float>(values));
    }
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(draw(0, 255));
    return bytes;
  }

  // 2.5 to 120 ms of noise, or of silence.
  std::vector<std::byte> packet() {
    const std::uint32_t config = draw(0, 31), code = draw(0, 1);
    std::vector<std::byte> bytes{static_cast<std::byte>(config << 3 | code)};
    const std::uint32_t length = draw(0, 60);
    for (std::uint32_t i = 0; i < 2 * length; ++i)
      bytes.push_back(static_cast<std::byte>(draw(0, 255)));
    return bytes;
  }

 private:
  std::mt19937& random_;
};

// A stream whose rows are done as soon as they are ready. Records their frames by position.
class RecordedRuns {
 public:
  explicit RecordedRuns(const StreamSettings& settings, const ResumeSettings* resume = nullptr)
      : live(settings, 100, {}, resume), frame_bytes_(settings.type.bytes()) {}

  // Call it after each message.
  void serve() {
    while (served_ < live.lane.rows.size()) {
      const ReadyRow& ready = live.lane.rows[served_++];
      const Row& row = ready.row;
      std::vector<std::byte> window;
      for (const Bytes part : ready.window) window.insert(window.end(), part.begin(), part.end());
      for (std::uint64_t i = row.left; i < std::uint64_t{row.left} + row.size; ++i) {
        const auto first = window.begin() + static_cast<std::ptrdiff_t>(i * frame_bytes_);
        frames[row.window_begin() + i] =
            std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(frame_bytes_));
      }
      live.answer(1);
    }
  }

  // The frames of the positions [begin, end) that were in a body, in one piece.
  std::vector<std::byte> values(std::uint64_t begin, std::uint64_t end) const {
    std::vector<std::byte> all;
    for (auto at = frames.lower_bound(begin); at != frames.end() && at->first < end; ++at)
      all.insert(all.end(), at->second.begin(), at->second.end());
    return all;
  }

  LiveStream live;
  std::map<std::uint64_t, std::vector<std::byte>> frames;  // by position

 private:
  const std::size_t frame_bytes_;
  std::size_t served_ = 0;
};

}  // namespace millrace::test
