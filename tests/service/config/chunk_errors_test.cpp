// SPDX-License-Identifier: Apache-2.0
// Invalid sizes and endpoints in a configuration, and their error messages.
#include <catch2/catch.hpp>

#include "tests/service/config/error_of.h"

using namespace millrace;
using Catch::Matchers::Contains;
using test::allowed;
using test::error_of;
using test::pipeline_error;

TEST_CASE("impossible sizes are an error that names the key") {
  const std::string size = "chunk.size = 320";
  for (const std::string few : {"[]", "[320]", "[320, 320]", "[\"320ms\", \"160ms\"]"})
    CHECK(allowed("pipeline", "chunk.sizes", few, size) ==
          "must be 2 to 16 lengths of at least 1 frame in ascending order, or a range");
  CHECK(allowed("pipeline", "chunk.sizes", "[320, \"33ms\"]", "rate = 11025\n" + size) ==
        "contains \"33ms\", which must be whole frames, at most 2147483647: at 11025 frames per "
        "second it is 363.825");
  CHECK(allowed("pipeline", "chunk.step", "160", size + "\nchunk.sizes = [160, 320]") ==
        "cannot be combined with sizes: then bodies lie end to end");
  CHECK(allowed("pipeline", "chunk.size", "\"100ms\"", "chunk.sizes = [160, 320]") ==
        "must be one of sizes, which are 160, 320 frames");
  for (const char* other : {"320", "\"160+320\"", "[160, 320.0]", "[[160], [320]]",
                            "[\"160+320\", 640]", "[\"160..320/1\"]", "true"})
    CHECK_THAT(error_of("[[pipeline]]\nchunk.sizes = " + std::string(other) + "\n" + size),
               Catch::StartsWith("m.toml:2: key 'pipeline.chunk.sizes' = ") &&
                   Contains(": must be a list of lengths, like [\"80ms\", \"160ms\"], or with "
                            "rule = \"random\" a range, like { from = "));
}

TEST_CASE("an impossible range of sizes is an error that names the key") {
  const auto error = [](const std::string& range) {
    return pipeline_error("chunk = { rule = \"random\", size = 320, sizes = { " + range + " } }");
  };
  CHECK(error("from = 160, to = 640, step = 160") == "no error");
  CHECK(error("from = 160, to = 640") ==
        "m.toml:2: key 'pipeline.chunk.sizes.step': is missing: a range needs from, to and step");
  CHECK(error("from = 160, to = 640, stop = 160") ==
        "m.toml:2: key 'pipeline.chunk.sizes.step': is missing: a range needs from, to and step");
  CHECK(error("from = 160, to = 640, step = 160, until = 2") ==
        "m.toml:2: key 'pipeline.chunk.sizes.until' = 2: unknown; the keys here are from, to and "
        "step");
  CHECK(
      error("from = 640, to = 160, step = 160") ==
      "m.toml:2: key 'pipeline.chunk.sizes' = {from = 640, step = 160, to = 160}: must be a range "
      "whose end exceeds its start, by a multiple of its step; each is at least 1 frame");
  CHECK(pipeline_error("chunk = { size = 320, sizes = { from = 160, to = 640, step = 160 } }") ==
        "m.toml:2: key 'pipeline.chunk.sizes' = {from = 160, step = 160, to = 640}: must be a list "
        "of "
        "2 to 16 lengths: a range needs rule = \"random\"");
}

TEST_CASE("a rule that cannot choose sizes is an error that names the key") {
  const std::string sizes = "chunk.size = 320\nchunk.sizes = [160, 320]";
  CHECK(allowed("pipeline", "chunk.rule", "\"endpoint\"", "chunk.size = 320") ==
        "must be fixed, adaptive or random: segments are ended by the key endpoint of the "
        "pipeline, beside chunk");
  CHECK(allowed("pipeline", "chunk.rule", "\"adaptive\"", "chunk.size = 320") ==
        "needs the key sizes: the sizes that the model was trained with");
  CHECK(allowed("pipeline", "chunk.seed", "7", sizes) ==
        "cannot be set with rule = \"fixed\": only with random");
  CHECK(allowed("pipeline", "chunk.seed", "-1", sizes + "\nchunk.rule = \"random\"") ==
        "must be a whole number from 0 to 9223372036854775807");
  CHECK(allowed("pipeline", "chunk.rule", "\"adaptive\"", "chunk.preset = \"silero-16k\"") ==
        "cannot be combined with preset: only align and pad can");
}

TEST_CASE("the voice detector needs audio at one of its rates") {
  const std::string needed =
      "\"vad\" (the default) needs audio at 8000, 16000, 32000 or 48000 frames per second; other "
      "pipelines can have \"worker\" or \"length\"";
  CHECK(allowed("pipeline", "endpoint.by", "\"vad\"", "rate = 24000") == needed);
  CHECK(pipeline_error("dim = 80\nendpoint = {}") ==
        "m.toml:3: key 'pipeline.endpoint.by': " + needed);
  for (const std::string rate : {"8000", "16000", "32000", "48000"})
    CHECK(pipeline_error("rate = " + rate + "\nendpoint = {}") == "no error");
}

TEST_CASE("a length in quotes has a unit, as it could be frames or milliseconds") {
  const std::string unit =
      "must be a number without quotes, or a time with its unit, such as \"100ms\"";
  CHECK(allowed("pipeline", "chunk.size", "\"100\"") == unit);
  CHECK(allowed("pipeline", "chunk.left", "\"5\"", "chunk.size = 100") == unit);
  CHECK(allowed("pipeline", "chunk.sizes", "[80, \"160\"]", "chunk.size = 160") == unit);
  CHECK(pipeline_error("chunk = { rule = \"random\", size = 160, "
                       "sizes = { from = \"80\", to = 160, step = 80 } }") ==
        "m.toml:2: key 'pipeline.chunk.sizes.from' = \"80\": " + unit);
  CHECK(allowed("pipeline", "endpoint.silence", "\"500\"") == unit);
}

TEST_CASE("an impossible endpoint is an error that names the key") {
  const std::string length =
      "must be frames from 0 to 2147483647 (1600), or a time in us, ms, s, min or h without a "
      "space (\"100ms\", \"0.1s\")";
  const std::string at_least_one = "must be at least 1 frame";
  CHECK(allowed("pipeline", "endpoint", "\"vad\"") ==
        "must be a table, like { by = \"vad\", silence = \"800ms\" }");
  CHECK(allowed("pipeline", "endpoint.by", "\"silence\"") ==
        "must be \"vad\", \"worker\" or \"length\"");
  CHECK(allowed("pipeline", "endpoint.silence", "\"1 s\"") == length);
  CHECK(allowed("pipeline", "endpoint.silence", "0") == at_least_one);
  CHECK(allowed("pipeline", "endpoint.before_speech", "\"on\"") == length + ", or \"off\"");
  CHECK(allowed("pipeline", "endpoint.max", "-1") == length);
  CHECK(allowed("pipeline", "endpoint.max", "\"0s\"") == at_least_one);
  CHECK(allowed("pipeline", "endpoint.sensitivity", "4") == "must be a whole number from 0 to 3");
  CHECK(allowed("pipeline", "endpoint.on_endpoint", "\"flush\"") ==
        "must be \"segment\" or \"reset\"");
  CHECK(allowed("pipeline", "endpoint.silense", "\"1s\"") == "unknown; did you mean 'silence'?");
  for (const std::string key : {"silence = \"1s\"", "before_speech = \"1s\"", "sensitivity = 1"})
    CHECK_THAT(pipeline_error("endpoint = { by = \"length\", " + key + " }"),
               Catch::EndsWith(": cannot be set with by = \"length\": only with by = \"vad\""));
  CHECK(pipeline_error(
            "dim = 80\nrate = 33.3333\nchunk = { size = 4 }\nendpoint = { by = \"length\" }") ==
        "m.toml:5: key 'pipeline.endpoint.max': the default is \"20s\", which must be whole "
        "frames, at most 2147483647: at 33.3333 frames per second it is 666.666");
}

TEST_CASE("bounds hold for the widest window of all sizes") {
  CHECK(
      pipeline_error("chunk = { size = \"1s\", sizes = [\"1s\", \"6s\"] }") ==
      "m.toml:2: key 'pipeline.chunk' = {size = \"1s\", sizes = [...]}: a window has 96000 frames; "
      "it must have at most 80000, as limits.stream_buffer is 5s");
  CHECK_THAT(
      error_of("[[pipeline]]\nshed_after = \"1s\"\nchunk = { size = \"100ms\", sizes = "
               "[\"100ms\", \"400ms\"] }"),
      Contains("key 'pipeline.shed_after' = \"1s\": needs limits.stream_buffer of at least "));
}
