// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::Conversion;
using test::converted;

namespace {

// Rates of each library, of small and of large numbers.
const std::vector<double> drained_rates{8000,  11025, 15999, 16000, 22050,  24000,
                                        32000, 44100, 48000, 96000, 176399, 192000};
const std::vector<double> pipeline_rates{8000, 16000, 22050, 24000, 44100, 48000};

std::uint64_t at(std::uint64_t frames, double from, double to) {
  return frames * static_cast<std::uint64_t>(to) / static_cast<std::uint64_t>(from);
}

template <class Test>
void for_all_rates(Test test) {
  for (const double from : drained_rates)
    for (const double to : pipeline_rates) {
      INFO(from << " to " << to);
      test(from, to);
    }
}

}  // namespace

TEST_CASE("441 frames at 44.1 kHz are 160 at 16 kHz") {
  Conversion conversion({.rate = 44100}, {});
  conversion.message(std::vector<std::byte>(441 * 2));
  conversion.drain();
  CHECK(conversion.frames.count() == 160);
}

TEST_CASE("after each drain the position is that of the frames before") {
  std::mt19937 random(4);
  for_all_rates([&](double from, double to) {
    const ClientFormat client{.rate = from};
    Conversion conversion(client, {.rate = to}, 300);
    std::uint64_t before = 0;
    for (int run = 0; run < 12; ++run) {
      const std::size_t frames = random() % (run % 3 == 0 ? 5 : 3000);
      conversion.messages(test::noise(client, frames, random), random, 4000);
      const std::uint64_t appended = conversion.frames.count();
      const std::uint64_t drained = conversion.drain(before).frames;
      CHECK(conversion.frames.count() == appended + drained);
      before += frames;
      CHECK(conversion.frames.count() == at(before, from, to));
    }
    CHECK(conversion.input_frames == before);
  });
}

TEST_CASE("positions far into a stream are exact") {
  Conversion conversion({.rate = 44100}, {});
  const std::uint64_t before = (1ull << 52) / 441 * 441 + 1;
  conversion.message(std::vector<std::byte>(440 * 2));
  conversion.drain(before);
  CHECK(conversion.frames.count() == 160);
}

TEST_CASE("each run has the values of converting the run alone") {
  std::mt19937 random(5);
  for_all_rates([&](double from, double to) {
    const ClientFormat client{.format = SampleFormat::f32le, .rate = from};
    const FrameType type{.element = Element::f32, .rate = to};
    Conversion conversion(client, type);
    std::uint64_t before = 0;
    for (int run = 0; run < 4; ++run) {
      const std::size_t frames = 1 + random() % 2000, begin = conversion.frames.bytes.size();
      const auto bytes = test::noise(client, frames, random);
      conversion.messages(bytes, random, 5000);
      conversion.drain(before);
      before += frames;
      const Bytes here = Bytes(conversion.frames.bytes).subspan(begin);
      const auto alone = converted(client, type, bytes);
      // The position is rounded over the whole stream, so that the run may have one frame more.
      REQUIRE(here.size() - alone.size() <= type.bytes());
      CHECK(std::equal(alone.begin(), alone.end(), here.begin()));
    }
  });
}

TEST_CASE("no frame is there before the frames of its time") {
  std::mt19937 random(6);
  for_all_rates([&](double from, double to) {
    Conversion conversion({.rate = from}, {.rate = to});
    while (conversion.input_frames < 5000) {
      conversion.message(test::noise({}, random() % 40, random));
      if (conversion.frames.count() > at(conversion.input_frames, from, to)) FAIL("too early");
    }
  });
}

TEST_CASE("frames are less than 40 ms late") {
  for_all_rates([&](double from, double to) {
    Conversion conversion({.rate = from}, {.rate = to});
    const std::vector<std::byte> piece(32);
    double latest = 0;
    while (static_cast<double>(conversion.input_frames) < from / 2) {
      conversion.message(piece);
      latest = std::max(latest, static_cast<double>(conversion.input_frames) / from -
                                    static_cast<double>(conversion.frames.count()) / to);
    }
    CHECK(latest <= 0.04);
  });
}

TEST_CASE("a drain without frames appends none") {
  Conversion conversion({.rate = 44100}, {});
  CHECK(conversion.drain(7).frames == 0);
  conversion.message(std::vector<std::byte>(1));
  CHECK(conversion.drain(7).frames == 0);
  CHECK(conversion.converter.has_partial());
  conversion.converter.drop_partial();
  CHECK(!conversion.converter.has_partial());
}

TEST_CASE("without a change of rate there is no lag") {
  Conversion conversion({.format = SampleFormat::mulaw, .values = 2, .channel = MeanOfChannels{}},
                        {});
  CHECK(conversion.message(std::vector<std::byte>(1000)).appended == 500);
  CHECK(conversion.drain().frames == 0);
}
