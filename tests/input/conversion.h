// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "input/input_converter.h"
#include "tests/support/bytes.h"

namespace millrace::test {

// Keeps all frames, and hands out memory for at most `piece` frames at once.
class KeptFrames : public FrameSink {
 public:
  explicit KeptFrames(const FrameType& type, std::size_t piece = 1000)
      : frame_(type.bytes()), piece_(piece) {}

  MutableBytes writable(std::size_t frames) override {
    memory_.resize(std::min(frames, piece_) * frame_);
    return memory_;
  }
  void append(std::size_t frames) override {
    bytes.insert(bytes.end(), memory_.begin(),
                 memory_.begin() + static_cast<std::ptrdiff_t>(frames * frame_));
  }
  std::uint64_t count() const { return bytes.size() / frame_; }

  std::vector<std::byte> bytes;

 private:
  const std::size_t frame_, piece_;
  std::vector<std::byte> memory_;
};

// A converter and all its frames.
struct Conversion {
  Conversion(const ClientFormat& from, const FrameType& to, std::size_t piece = 1000)
      : converter(from, to), frames(to, piece) {}

  InputConverter::Converted message(Bytes bytes) {
    const auto converted = converter.convert(bytes, frames);
    input_frames += converted.input_frames;
    clamped += converted.clamped;
    return converted;
  }
  // Messages of random lengths, up to `longest` bytes.
  void messages(Bytes bytes, std::mt19937& random, std::size_t longest) {
    while (!bytes.empty()) {
      const std::size_t size = std::min<std::size_t>(random() % (longest + 1), bytes.size());
      message(bytes.first(size));
      bytes = bytes.subspan(size);
    }
  }
  Appended drain(std::uint64_t before = 0) { return converter.drain(before, frames); }

  InputConverter converter;
  KeptFrames frames;
  std::uint64_t input_frames = 0, clamped = 0;
};

// All frames of a run on its own.
inline std::vector<std::byte> converted(const ClientFormat& from, const FrameType& to,
                                        Bytes message) {
  Conversion conversion(from, to);
  conversion.message(message);
  conversion.drain();
  return conversion.frames.bytes;
}

template <class To, class From>
std::vector<To> converted(SampleFormat from, Element to, std::initializer_list<From> values) {
  const FrameType type{.element = to};
  return values_of<To>(converted(format_of(from, type), type, bytes_of(values)));
}

// Random frames of the format, whose floats are within ±1.2.
inline std::vector<std::byte> noise(const ClientFormat& format, std::size_t frames,
                                    std::mt19937& random) {
  std::vector<std::byte> bytes(frames * format.values * size_of(format.format));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (format.format == SampleFormat::f32le)
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      const float value = std::uniform_real_distribution<float>(-1.2f, 1.2f)(random);
      std::memcpy(&bytes[i], &value, sizeof value);
    }
  return bytes;
}

}  // namespace millrace::test
