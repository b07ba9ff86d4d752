// SPDX-License-Identifier: Apache-2.0
#include "input/sample_format.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("audio can be s16le or f32le") {
  CHECK(*parse_sample_format("s16le", false) == SampleFormat::s16le);
  CHECK(*parse_sample_format("f32le", false) == SampleFormat::f32le);
  CHECK(default_format(false) == SampleFormat::s16le);
}

TEST_CASE("features can be f32le or f16le") {
  CHECK(*parse_sample_format("f32le", true) == SampleFormat::f32le);
  CHECK(*parse_sample_format("f16le", true) == SampleFormat::f16le);
  CHECK(default_format(true) == SampleFormat::f32le);
}

TEST_CASE("an unknown format is refused with the allowed formats") {
  CHECK(parse_sample_format("f16le", false).error().message ==
        "format of audio must be s16le or f32le");
  CHECK(parse_sample_format("s16le", true).error().message ==
        "format of features must be f32le or f16le");
  CHECK(parse_sample_format("", false).has_error());
  CHECK(parse_sample_format("S16LE", false).has_error());
}
