// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/request_check.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace millrace;
using Catch::Matchers::Contains;

namespace {

PipelineOptions audio(std::uint32_t channels = 1) {
  PipelineOptions pipeline;
  pipeline.frames.values = channels;
  pipeline.chunk.spec.size = 5120;
  return pipeline;
}

PipelineOptions with_sizes(SizeList sizes) {
  PipelineOptions pipeline = audio();
  pipeline.chunk.sizes.sizes = std::move(sizes);
  return pipeline;
}

PipelineOptions features() {
  PipelineOptions pipeline;
  pipeline.frames = {.element = Element::f32, .values = 80, .rate = 12.5, .features = true};
  return pipeline;
}

// "200", or the status, the parameter and the message of the refusal.
std::string outcome(const StreamRequest& request, const PipelineOptions& pipeline = audio()) {
  const auto checked = check_request(request, pipeline);
  if (checked) return "200";
  const RequestError& error = checked.error();
  return std::to_string(error.status) + " " + error.parameter + ": " + error.message;
}

ClientFormat format(const StreamRequest& request, const PipelineOptions& pipeline = audio()) {
  const auto checked = check_request(request, pipeline);
  REQUIRE(checked.has_value());
  return checked->format;
}

}  // namespace

TEST_CASE("a client of some protocols chooses how its segments end") {
  using By = SegmentEnds::By;
  const auto endpoint = [](const SegmentEnds& ends, const PipelineOptions& pipeline) {
    return check_request({.ends = ends}, pipeline)->endpoint;
  };
  const EndpointRule by_worker{.by = EndpointRule::By::worker, .max = 1000};
  PipelineOptions pipeline = audio();
  CHECK_FALSE(endpoint({}, pipeline));
  CHECK(endpoint({By::voice}, pipeline) == EndpointRule{.silence = 12'800, .max = 320'000});
  CHECK(endpoint({By::voice, std::chrono::milliseconds(350)}, pipeline)->silence == 5600);
  CHECK(endpoint({By::voice, std::chrono::milliseconds(0)}, pipeline)->silence == 1);
  CHECK(endpoint({By::voice, std::chrono::hours(1)}, pipeline)->silence == 320'000);
  pipeline.endpoint = by_worker;
  CHECK(endpoint({}, pipeline) == by_worker);
  CHECK(endpoint({By::voice, std::chrono::milliseconds(350)}, pipeline) == by_worker);
  CHECK_FALSE(endpoint({By::client}, pipeline));
}

TEST_CASE("segments end by voice only in audio of a rate that the detector has") {
  const StreamRequest request{.ends = {SegmentEnds::By::voice}};
  PipelineOptions pipeline = audio();
  pipeline.frames.rate = 24'000;
  CHECK_THAT(outcome(request, pipeline), Catch::StartsWith("415 endpoint: "));
  CHECK_THAT(outcome(request, features()), Catch::StartsWith("415 endpoint: "));
}

TEST_CASE("a request without parameters has the format of the pipeline") {
  CHECK(format({}, audio(2)) == format_of(SampleFormat::s16le, audio(2).frames));
  CHECK(format({}, features()) == format_of(SampleFormat::f32le, features().frames));
}

TEST_CASE("every format of audio is accepted, and others are refused") {
  for (const char* name : {"s16le", "s24le", "f32le", "mulaw", "alaw", "opus"})
    CHECK(outcome({.format = name}) == "200");
  for (const char* name : {"f16le", "mp3", "S16LE"})
    CHECK_THAT(outcome({.format = name}), Catch::StartsWith("415 format: "));
  CHECK(outcome({.format = "f16le"}, features()) == "200");
  CHECK_THAT(outcome({.format = "mulaw"}, features()), Catch::StartsWith("415 format: "));
}

TEST_CASE("audio may have any whole rate from 8000 to 192000") {
  for (const double rate : {8000.0, 11'025.0, 16'000.0, 44'100.0, 191'999.0, 192'000.0})
    CHECK(format({.rate = rate}).rate == rate);
  for (const double rate : {0.0, -1.0, -16'000.0, 7999.0, 192'001.0, 16'000.5, 1e300})
    CHECK(outcome({.rate = rate}) == "415 rate: must be a whole number from 8000 to 192000");
}

TEST_CASE("a client may have the rate of its pipeline, whatever that is") {
  PipelineOptions slow = audio();
  slow.frames.rate = 4000;
  CHECK(outcome({.rate = 4000}, slow) == "200");
  CHECK(outcome({}, slow) == "200");
  CHECK_THAT(outcome({.rate = 4001}, slow), Catch::StartsWith("415 rate: "));
}

TEST_CASE("features have the rate and the dim of their pipeline, and no channels") {
  CHECK(outcome({.rate = 12.5, .dim = 80}, features()) == "200");
  CHECK(outcome({.rate = 100}, features()) == "415 rate: the pipeline takes 12.5");
  CHECK(outcome({.dim = 81}, features()) == "415 dim: the pipeline takes 80");
  CHECK(outcome({.channels = 80}, features()) == "415 channels: the pipeline takes features");
  CHECK(outcome({.channel = "0"}, features()) == "415 channel: the pipeline takes features");
  CHECK(outcome({.dim = 1}) == "415 dim: the pipeline takes audio");
}

TEST_CASE("audio has 1 to 256 channels") {
  CHECK_THAT(outcome({.channels = 0}), Catch::StartsWith("415 channels: "));
  CHECK_THAT(outcome({.channels = 257}, audio(256)), Catch::StartsWith("415 channels: "));
  CHECK(outcome({.channels = 256}, audio(256)) == "200");
  CHECK(outcome({.channel = "255", .channels = 256}) == "200");
}

TEST_CASE("without a selection, client and pipeline have the same number of channels") {
  CHECK(outcome({.channels = 2}) ==
        "415 channel: the pipeline takes 1 channel, and the client has 2 channels; channel can be "
        "one of them, or mean");
  CHECK(outcome({.channels = 1}, audio(2)) ==
        "415 channel: the pipeline takes 2 channels, and the client has 1 channel");
  CHECK(outcome({.channels = 2}, audio(2)) == "200");
}

TEST_CASE("a channel, or the mean of all, may be selected for a pipeline with one channel") {
  CHECK(format({.channel = "1", .channels = 2}).channel == ChannelChoice(OneChannel{1}));
  CHECK(format({.channel = "mean", .channels = 2}).channel == ChannelChoice(MeanOfChannels{}));
  CHECK(format({.channel = "1", .channels = 2}).values == 2);
  CHECK(outcome({.channel = "0"}) == "200");
  for (const char* channel : {"2", "-1", "left", "", "1.0", " 1", "4294967297", "Mean"})
    CHECK(outcome({.channel = channel, .channels = 2}) ==
          "400 channel: must be mean or a channel from 0 to 1, as the client has 2 channels");
  CHECK(outcome({.channel = "0", .channels = 2}, audio(2)) ==
        "415 channel: a channel cannot be selected: the pipeline takes 2 channels");
}

TEST_CASE("Opus has one or two channels, and no rate but 48000") {
  CHECK(format({.format = "opus"}).rate == 48'000);
  CHECK(format({.format = "opus"}).values == 1);
  CHECK(outcome({.format = "opus", .rate = 48'000}) == "200");
  CHECK_THAT(outcome({.format = "opus", .rate = 16'000}), Catch::StartsWith("415 rate: "));
  CHECK(outcome({.format = "opus", .channel = "mean", .channels = 2}) == "200");
  CHECK_THAT(outcome({.format = "opus", .channel = "mean", .channels = 3}),
             Catch::StartsWith("415 channels: "));
  CHECK_THAT(outcome({.format = "opus", .channels = 2}), Catch::StartsWith("415 channel: "));
}

TEST_CASE("a client may choose one of the pipeline's sizes, as a time or in frames") {
  const PipelineOptions sizes = with_sizes(SizeList(std::vector<std::uint32_t>{1280, 2560, 5120}));
  CHECK_FALSE(check_request({}, sizes)->size);
  CHECK(check_request({.chunk = "160ms"}, sizes)->size == 2560u);
  CHECK(check_request({.chunk = "0.16s"}, sizes)->size == 2560u);
  CHECK(check_request({.chunk = "1280"}, sizes)->size == 1280u);
  for (const char* chunk : {"100ms", "0", "x", "0ms", "-1280", "1281", "1e9s", "99999999999999"})
    CHECK(outcome({.chunk = chunk}, sizes) ==
          "400 chunk: must be one of the pipeline's sizes: 80ms, 160ms, 320ms");
  CHECK_THAT(outcome({.chunk = "5120"}), Contains("400 chunk: ") && Contains("none"));
}

TEST_CASE("the sizes of a range are listed by its ends and its step") {
  const PipelineOptions range = with_sizes(SizeList(640, 16'000, 640));
  CHECK(check_request({.chunk = "80ms"}, range)->size == 1280u);
  CHECK(outcome({.chunk = "50ms"}, range) ==
        "400 chunk: must be one of the pipeline's sizes: 40ms to 1000ms in steps of 40ms");
  CHECK(outcome({.chunk = "1"}, with_sizes(SizeList(std::vector<std::uint32_t>{7, 1280}))) ==
        "400 chunk: must be one of the pipeline's sizes: 7, 80ms");
}
