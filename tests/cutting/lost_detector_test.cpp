// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "cutting/cutter.h"

using namespace millrace;
using Kind = Event::Kind;

namespace {

class WithoutMemory final : public VoiceDetector {
 public:
  using VoiceDetector::VoiceDetector;
  void restart() override { throw std::bad_alloc(); }
};

}  // namespace

TEST_CASE("a stream without memory for its voice detector reports it once, and its rows go on") {
  const bool after_row = GENERATE(true, false);  // or after a gap in an empty segment
  const ChunkRule rule{.spec = {.size = 160}};
  const EndpointRule endpoint{.silence = 160, .before_speech = 160, .max = 1'000'000};
  Cutter cutter(
      rule, {.endpoint = &endpoint, .detector = std::make_unique<WithoutMemory>(FrameType{}, 2u)});
  REQUIRE(cutter.needs_values());
  const std::vector<std::int16_t> silence(80);
  if (after_row)
    cutter.add({.kind = Kind::frames, .count = 80}, {std::as_bytes(std::span(silence)), Bytes()});
  REQUIRE_FALSE(cutter.next());
  CHECK_FALSE(cutter.lost_detector());
  cutter.add({.kind = Kind::gap, .count = 5});
  const auto last = cutter.next();
  REQUIRE(last.has_value() == after_row);
  CHECK((!last || last->is(flag::last)));
  CHECK(cutter.lost_detector());
  CHECK_FALSE(cutter.lost_detector());
  CHECK_FALSE(cutter.needs_values());
  while (cutter.next()) FAIL("a row without frames");
  for (int i = 0; i < 3; ++i) {
    cutter.add({.kind = Kind::frames, .count = 160});
    const auto row = cutter.next();
    REQUIRE(row);
    CHECK(row->size == 160);
    CHECK_FALSE(row->is(flag::last));
    CHECK_FALSE(cutter.next());
  }
}
