// SPDX-License-Identifier: Apache-2.0
#include "load/streams/content.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

constexpr FrameType audio{};
constexpr FrameType features{.element = Element::f32, .values = 8, .rate = 100, .features = true};

// The first `packets` packets of the stream that begins with packet `first`.
std::vector<std::byte> packets_of(const Content& content, std::uint32_t client, std::uint64_t first,
                                  std::size_t packets) {
  std::vector<std::byte> all(packets * content.packet_bytes());
  for (std::size_t i = 0; i < packets; ++i)
    content.write(client, first + i,
                  MutableBytes(all).subspan(i * content.packet_bytes(), content.packet_bytes()));
  return all;
}

std::vector<std::byte> as_floats(Bytes samples) {
  std::vector<std::byte> floats(samples.size() * 2);
  for (std::size_t i = 0; i < samples.size() / 2; ++i) {
    std::int16_t sample;
    std::memcpy(&sample, samples.data() + 2 * i, 2);
    const float value = static_cast<float>(sample) / 32768;
    std::memcpy(floats.data() + 4 * i, &value, 4);
  }
  return floats;
}

}  // namespace

TEST_CASE("a window of any length and position is recognized, and no other is mistaken for it") {
  Schedule schedule({});
  schedule.start(Time{1h});
  for (const FrameType& type : {audio, features}) {
    const Content content(schedule, type);
    const auto sent = packets_of(content, 3, 7, 4);
    const std::size_t frame = content.packet_bytes() / content.packet_frames();
    const Element element = type.element;
    for (std::size_t begin : {std::size_t{0}, std::size_t{1}, content.packet_frames() - 1,
                              content.packet_frames() + 3}) {
      for (std::size_t frames : {std::size_t{5}, 2 * content.packet_frames()}) {
        const Bytes window = Bytes(sent).subspan(begin * frame, frames * frame);
        CHECK(content.matches(3, 7, begin, window, element));
        CHECK_FALSE(content.matches(3, 7, begin + 5, window, element));
        CHECK_FALSE(content.matches(3, 8, begin, window, element));
        CHECK_FALSE(content.matches(4, 7, begin, window, element));
      }
    }
  }
}

TEST_CASE("no two clients send the same frames at the same time") {
  Schedule schedule({.streams = 40'000});
  constexpr FrameType wide{.element = Element::f32, .values = 80, .rate = 100, .features = true};
  for (const FrameType& type : {audio, wide}) {
    const Content content(schedule, type);
    const auto sent = packets_of(content, 3, 0, 3);
    for (std::uint32_t other = 4; other < 40'000; ++other)
      if (content.matches(other, 0, 0, sent, type.element)) FAIL(other);
  }
  const std::vector<std::byte> noise = packets_of(Content(schedule, audio), 0, 0, 32);
  for (const std::size_t bytes : {31 * 3200, 32 * 3200, 2 * 7919}) {
    const Content content(schedule, audio, {noise.begin(), noise.begin() + bytes}, audio.rate);
    const auto sent = packets_of(content, 3, 0, 2);
    for (std::uint32_t other = 4; other < 200; ++other)
      if (content.matches(other, 0, 0, sent, Element::s16)) FAIL(bytes);
  }
}

TEST_CASE("one wrong value is detected") {
  Schedule schedule({});
  const Content content(schedule, audio);
  auto sent = packets_of(content, 0, 0, 2);
  sent[3000] ^= std::byte{1};
  CHECK_FALSE(content.matches(0, 0, 0, sent, Element::s16));
}

TEST_CASE("samples that were converted to floats are recognized") {
  Schedule schedule({});
  const Content content(schedule, audio);
  auto floats = as_floats(packets_of(content, 1, 0, 2));
  CHECK(content.matches(1, 0, 0, floats, Element::f32));
  floats[9000] ^= std::byte{1};
  CHECK_FALSE(content.matches(1, 0, 0, floats, Element::f32));
}

TEST_CASE("noise samples begin with the due time of their packet") {
  Schedule schedule({.streams = 2});
  schedule.start(Time{1h});
  const Content content(schedule, audio);
  const auto sent = packets_of(content, 1, 5, 1);
  std::int64_t stamp = 0;
  std::memcpy(&stamp, sent.data(), sizeof stamp);
  CHECK(from_wire(stamp) == schedule.due(1, 5));
}

TEST_CASE("files are sent unchanged, and repeat at their end") {
  Schedule schedule({.packet = 100ms});
  std::vector<std::byte> file;
  for (int i = 0; i < 2 * 4000; ++i) file.push_back(static_cast<std::byte>(i * 31 >> 3));
  const Content content(schedule, audio, file, audio.rate);
  const auto sent = packets_of(content, 0, 0, 5);  // 8000 frames: twice the file
  CHECK(std::memcmp(sent.data(), file.data(), file.size()) == 0);
  CHECK(std::memcmp(sent.data() + file.size(), file.data(), file.size()) == 0);
  CHECK(content.matches(0, 0, 0, sent, Element::s16));
}

TEST_CASE("packets of another format and rate have the frames of their time in the pipeline") {
  Schedule schedule({.packet = 20ms});
  const Content mulaw(schedule, audio, {.format = SampleFormat::mulaw, .rate = 8000});
  CHECK(mulaw.packet_bytes() == 160);
  CHECK(mulaw.packet_frames() == 320);
  const Content stereo(schedule, {.values = 2}, {.format = SampleFormat::s24le, .rate = 48'000});
  CHECK(stereo.packet_bytes() == 960 * 6);
  const Content opus(schedule, audio, {.format = SampleFormat::opus, .rate = 16'000});
  CHECK(packets_of(opus, 0, 0, 1).front() == std::byte{0xf8});
  CHECK(packets_of(opus, 0, 0, 1) != packets_of(opus, 0, 1, 1));
}

TEST_CASE("values that the service has converted are not compared") {
  Schedule schedule({});
  const Content content(schedule, audio, {.format = SampleFormat::s16le, .rate = 8000});
  const std::vector<std::byte> any(3200);
  CHECK(content.matches(0, 0, 0, any, Element::s16));
}
