// SPDX-License-Identifier: Apache-2.0
// Rows do not depend on how a client's bytes are split into messages.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/streams/recorded_runs.h"

using namespace millrace;
using test::at;

namespace {

// What a client does after some bytes.
struct Step {
  std::vector<std::byte> bytes;
  enum class Then : std::uint8_t { nothing, flush, reset, gap } then = Then::nothing;
};

// A stream's input with a random format, rate, choice of channels, sizes and endpoints by length.
class Input {
 public:
  explicit Input(std::uint32_t seed) : random_(seed), audio_(random_) {
    settings_ = {.id = {},
                 .name = "mic",
                 .type = {.element = audio_.one_of({Element::s16, Element::f32}),
                          .values = audio_.draw(1, 2),
                          .rate = audio_.one_of({8000.0, 16'000.0, 48'000.0})},
                 .chunk = {.spec = {.size = 100, .left = 20, .right = 30}},
                 .frames_limit = 1'000'000};
    settings_.format = audio_.format(settings_.type.values);
    if (audio_.draw(0, 1) == 1)
      settings_.chunk.sizes = {
          .by = SizeRule::By::random, .sizes = SizeList(50, 300, 50), .seed = seed};
    if (audio_.draw(0, 1) == 1)
      settings_.endpoint =
          EndpointRule{.by = EndpointRule::By::length, .max = audio_.draw(50, 900)};
    for (std::uint32_t steps = audio_.draw(1, 12); steps > 0; --steps)
      steps_.push_back(
          {audio_.message(settings_.format, audio_.draw(1, 800)),
           static_cast<Step::Then>(std::max(0, static_cast<int>(audio_.draw(0, 8)) - 5))});
  }

  bool is_opus() const { return settings_.format.format == SampleFormat::opus; }

  // The rows of the stream, and the values in each window. Messages have at most `most` bytes; 0:
  // of random lengths.
  std::pair<test::Rows, std::vector<std::vector<std::byte>>> rows(std::size_t most) {
    test::LiveStream live(settings_);
    std::size_t read = 0;
    std::vector<std::vector<std::byte>> windows;
    const auto serve = [&] {
      for (; read < live.lane.rows.size(); ++read) {
        std::vector<std::byte>& window = windows.emplace_back();
        for (const Bytes part : live.lane.rows[read].window)
          window.insert(window.end(), part.begin(), part.end());
        live.answer(1);
      }
    };
    for (const Step& step : steps_) {
      for (Bytes left = step.bytes; !left.empty();) {
        const std::size_t wanted = most > 0 ? most : audio_.draw(1, 500);
        const std::size_t count = is_opus() ? left.size() : std::min(wanted, left.size());
        live.stream.frames(left.first(count), live.now);
        left = left.subspan(count);
        serve();
      }
      if (step.then == Step::Then::flush) live.stream.flush({}, live.now);
      if (step.then == Step::Then::reset) live.stream.reset(live.now);
      if (step.then == Step::Then::gap) live.stream.gap(7, live.now);
      serve();
    }
    live.stream.end(live.now);
    serve();
    return {live.rows(), windows};
  }

 private:
  std::mt19937 random_;
  test::RandomAudio audio_;
  StreamSettings settings_;
  std::vector<Step> steps_;
};

}  // namespace

TEST_CASE("rows, markers and values do not depend on how a client splits its bytes") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Input input(seed);
    const auto whole = input.rows(std::size_t{1} << 30);
    REQUIRE(input.rows(0) == whole);
    if (seed % 20 == 0) REQUIRE(input.rows(1) == whole);
  }
}
