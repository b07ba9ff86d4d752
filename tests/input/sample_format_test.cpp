// SPDX-License-Identifier: Apache-2.0
#include "input/sample_format.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("audio can be integers, floats, G.711 or Opus") {
  CHECK(*parse_sample_format("s16le", false) == SampleFormat::s16le);
  CHECK(*parse_sample_format("s24le", false) == SampleFormat::s24le);
  CHECK(*parse_sample_format("f32le", false) == SampleFormat::f32le);
  CHECK(*parse_sample_format("mulaw", false) == SampleFormat::mulaw);
  CHECK(*parse_sample_format("alaw", false) == SampleFormat::alaw);
  CHECK(*parse_sample_format("opus", false) == SampleFormat::opus);
  CHECK(default_format(false) == SampleFormat::s16le);
}

TEST_CASE("features can be f32le or f16le") {
  CHECK(*parse_sample_format("f32le", true) == SampleFormat::f32le);
  CHECK(*parse_sample_format("f16le", true) == SampleFormat::f16le);
  CHECK(default_format(true) == SampleFormat::f32le);
}

TEST_CASE("an unknown format is refused with the allowed formats") {
  CHECK(parse_sample_format("f16le", false).error().message ==
        "format of audio must be s16le, s24le, f32le, mulaw, alaw or opus");
  CHECK(parse_sample_format("s16le", true).error().message ==
        "format of features must be f32le or f16le");
  CHECK(parse_sample_format("opus", true).has_error());
  CHECK(parse_sample_format("", false).has_error());
  CHECK(parse_sample_format("S16LE", false).has_error());
}

TEST_CASE("a value has the bytes of its format") {
  CHECK(size_of(SampleFormat::s16le) == 2);
  CHECK(size_of(SampleFormat::s24le) == 3);
  CHECK(size_of(SampleFormat::f16le) == 2);
  CHECK(size_of(SampleFormat::f32le) == 4);
  CHECK(size_of(SampleFormat::mulaw) == 1);
  CHECK(size_of(SampleFormat::alaw) == 1);
  CHECK(size_of(SampleFormat::opus) == 0);
}
