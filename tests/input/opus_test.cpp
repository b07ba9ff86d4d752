// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/input/conversion.h"
#include "tests/input/opus_audio.h"

using namespace millrace;
using test::Conversion;
using test::opus;
using test::opus_packets;
using test::Packet;
using test::values_of;
using Fault = InputConverter::Fault;

namespace {

FrameType floats(double rate, std::uint32_t channels = 1) {
  return {.element = Element::f32, .values = channels, .rate = rate};
}

std::vector<float> all(Conversion& conversion, const std::vector<Packet>& packets) {
  for (const Packet& packet : packets) CHECK(conversion.message(packet).fault == Fault::none);
  return values_of<float>(conversion.frames.bytes);
}

Packet packet_of(std::initializer_list<int> bytes) {
  Packet packet;
  for (const int byte : bytes) packet.push_back(static_cast<std::byte>(byte));
  return packet;
}

// Three frames of 60 ms in the header: 180 ms.
const Packet too_long = packet_of({0x1b, 0x03, 1, 2, 3});

}  // namespace

TEST_CASE("packets are decoded at the rates of Opus as libopus decodes them") {
  const auto packets = opus_packets(10);
  for (const int rate : {8000, 12000, 16000, 24000, 48000}) {
    Conversion conversion(opus(), floats(rate));
    CHECK(conversion.converter.input_rate() == rate);
    CHECK(all(conversion, packets) == test::decoded(packets, rate));
    CHECK(conversion.drain().frames == 0);
  }
}

TEST_CASE("packets for another rate are decoded at 48 kHz and resampled") {
  const auto packets = opus_packets(10);
  Conversion conversion(opus(), floats(44100));
  CHECK(conversion.converter.input_rate() == 48000);
  all(conversion, packets);
  conversion.drain();
  CHECK(conversion.input_frames == 9600);
  CHECK(conversion.frames.bytes == test::converted({.format = SampleFormat::f32le, .rate = 48000},
                                                   floats(44100),
                                                   test::bytes_of(test::decoded(packets, 48000))));
}

TEST_CASE("channels of Opus are selected and averaged") {
  const auto packets = opus_packets(5, 20, 2);
  const auto both = test::decoded(packets, 16000, 2);
  Conversion stereo(opus(2), floats(16000, 2)), right(opus(2, OneChannel{1}), floats(16000));
  CHECK(all(stereo, packets) == both);
  const auto selected = all(right, packets);
  Conversion mean(opus(2, MeanOfChannels{}), floats(16000));
  const auto means = all(mean, packets);
  REQUIRE(selected.size() * 2 == both.size());
  for (std::size_t i = 0; i < selected.size(); ++i) {
    REQUIRE(selected[i] == both[2 * i + 1]);
    REQUIRE(means[i] == both[2 * i] * 0.5f + both[2 * i + 1] * 0.5f);
  }
}

TEST_CASE("s16 frames of Opus are rounded to the nearest value") {
  const auto packets = opus_packets(5);
  Conversion conversion(opus(), {});
  for (const Packet& packet : packets) conversion.message(packet);
  CHECK(conversion.frames.bytes == test::converted({.format = SampleFormat::f32le}, {},
                                                   test::bytes_of(test::decoded(packets, 16000))));
}

TEST_CASE("the decoder restarts with each drain") {
  const auto packets = opus_packets(8);
  Conversion conversion(opus(), floats(16000));
  all(conversion, packets);
  conversion.drain();
  const std::size_t begin = conversion.frames.bytes.size();
  for (const Packet& packet : packets) conversion.message(packet);
  CHECK(values_of<float>(Bytes(conversion.frames.bytes).subspan(begin)) ==
        test::decoded(packets, 16000));
}

TEST_CASE("a packet may have any length from 2.5 to 120 ms") {
  for (const double ms : {2.5, 5.0, 10.0, 20.0, 40.0, 60.0}) {
    Conversion conversion(opus(), floats(16000));
    const auto converted = conversion.message(opus_packets(1, ms).front());
    CHECK(converted.input_frames == static_cast<std::uint64_t>(16 * ms));
    CHECK(converted.appended == converted.input_frames);
    CHECK(conversion.converter.lost_input_frames(3) == 3 * converted.input_frames);
  }
  // Two frames of 60 ms: the code in the first byte doubles the frame.
  Conversion conversion(opus(), floats(16000));
  const Packet twice = packet_of({0x1b, 0x02});  // two frames of 60 ms, without content
  CHECK(conversion.message(twice).input_frames == 1920);
}

TEST_CASE("a message of one byte is a packet") {
  Conversion conversion(opus(), floats(16000));
  const Packet first = opus_packets(1).front();
  conversion.message(first);
  const auto silence = conversion.message(Bytes(first).first(1));
  CHECK(silence.fault == Fault::none);
  CHECK(silence.appended == 320);
}

TEST_CASE("an empty message converts nothing") {
  Conversion conversion(opus(), floats(16000));
  const auto converted = conversion.message({});
  CHECK(converted.fault == Fault::none);
  CHECK(converted.input_frames == 0);
}

TEST_CASE("a packet that libopus refuses is as long as its header says") {
  Conversion conversion(opus(), floats(16000));
  // Two frames of 60 ms of different lengths; the first is longer than the packet.
  const auto refused = conversion.message(packet_of({0x1a, 0xc0, 1, 2}));
  CHECK(refused.fault == Fault::bad_packet);
  CHECK(refused.input_frames == 1920);
  CHECK(refused.appended == 0);
  CHECK(conversion.frames.count() == 0);
}

TEST_CASE("a packet of over 120 ms is as long as the packet before it") {
  Conversion conversion(opus(), floats(16000));
  CHECK(conversion.message(too_long).fault == Fault::bad_packet);
  CHECK(conversion.message(too_long).input_frames == 320);
  conversion.message(opus_packets(1, 40).front());
  CHECK(conversion.message(too_long).input_frames == 640);
}

TEST_CASE("lost packets are as long as the packet before, or 20 ms") {
  Conversion conversion(opus(), floats(24000));
  CHECK(conversion.converter.lost_input_frames(2) == 2 * 480);
  conversion.message(opus_packets(1, 60).front());
  conversion.drain();
  CHECK(conversion.converter.lost_input_frames(2) == 2 * 1440);
  CHECK(Conversion({}, {}).converter.lost_input_frames(7) == 7);
}

TEST_CASE("the length of a message bounds its input frames") {
  CHECK(Conversion(opus(), floats(44100)).converter.most_input_frames(1) == 5760);
  CHECK(Conversion(opus(), floats(8000)).converter.most_input_frames(1) == 960);
  CHECK(Conversion({.values = 2}, {.values = 2}).converter.most_input_frames(11) == 2);
}
