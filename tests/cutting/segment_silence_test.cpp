// SPDX-License-Identifier: Apache-2.0
#include "cutting/segment_silence.h"

#include <catch2/catch.hpp>
#include <string_view>

using namespace millrace;

namespace {

// Adds pieces of 10 frames to a segment: 's' has speech, '-' has none. Returns the number of pieces
// up to the one that ends the segment, or 0.
std::size_t ends_after(SegmentSilence& silence, std::string_view pieces, EndpointReason reason) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (const auto end = silence.add(pieces[i] == 's', 10)) {
      CHECK(*end == reason);
      return i + 1;
    }
  return 0;
}

std::size_t ends_after(const EndpointRule& rule, std::string_view pieces, EndpointReason reason) {
  SegmentSilence silence(rule);
  return ends_after(silence, pieces, reason);
}

constexpr auto after_speech = EndpointReason::silence;
constexpr auto no_speech = EndpointReason::no_speech;

}  // namespace

TEST_CASE("silence after speech ends a segment") {
  CHECK(ends_after({.silence = 30}, "ss---", after_speech) == 5);
  CHECK(ends_after({.silence = 21}, "ss---", after_speech) == 5);
  CHECK(ends_after({.silence = 31}, "ss---", after_speech) == 0);
  CHECK(ends_after({.silence = 1}, "ss-", after_speech) == 3);
}

TEST_CASE("speech ends a silence") {
  CHECK(ends_after({.silence = 30}, "s--s--s---", after_speech) == 10);
}

TEST_CASE("without speech only before_speech ends a segment") {
  CHECK(ends_after({.silence = 20}, "----------", no_speech) == 0);
  CHECK(ends_after({.silence = 20, .before_speech = 50}, "----------", no_speech) == 5);
  CHECK(ends_after({.silence = 50, .before_speech = 20}, "s--------", after_speech) == 6);
  CHECK(ends_after({.silence = 50, .before_speech = 30}, "--s------", after_speech) == 8);
}

TEST_CASE("silence and speech count from the start of the segment") {
  const EndpointRule rule{.silence = 30, .before_speech = 40};
  SegmentSilence silence(rule);
  CHECK(ends_after(silence, "s--", after_speech) == 0);
  silence.begin();
  CHECK(silence.add(false, 4) == std::nullopt);  // part of a piece
  CHECK(ends_after(silence, "----", no_speech) == 4);
}
