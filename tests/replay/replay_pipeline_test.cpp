// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_pipeline.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "replay/selection.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;

namespace {

std::vector<std::uint64_t> numbers(const std::vector<recording::StreamParts>& streams) {
  std::vector<std::uint64_t> all;
  for (const auto& parts : streams) all.push_back(parts.front().meta.number);
  return all;
}

recording::RecordedStream stream(std::uint64_t number) {
  recording::RecordedStream stream;
  stream.meta = {.number = number, .pipeline = "asr", .rule = R"({"size":1600})"};
  return stream;
}

std::string error_of(std::vector<recording::RecordedStream> streams, PipelineChoice choice = {}) {
  const auto pipeline = replay_pipeline(streams, choice);
  return pipeline ? "" : pipeline.error();
}

}  // namespace

TEST_CASE("without a file the pipeline is the recorded one, with default settings") {
  const std::vector streams{stream(1)};
  const auto pipeline = replay_pipeline(streams, {});
  REQUIRE(pipeline.has_value());
  CHECK(pipeline->options.name == "asr");
  CHECK(pipeline->options.chunk == ChunkRule{.spec = {.size = 1600}});
  CHECK(pipeline->options.batch.width_buckets == std::vector<std::uint32_t>{1600});
  CHECK(pipeline->options.batch.slots == 64);
  CHECK(pipeline->options.dtype == Element::s16);
  CHECK_FALSE(pipeline->other_rule);
}

TEST_CASE("the batches are those of the newest stream that has recorded them") {
  std::vector streams{stream(1), stream(2), stream(3)};
  streams[0].meta.batches = {.slots = 8, .rows = 4, .widths = {1600}};
  streams[1].meta.batches = {
      .dtype = Element::f32, .slots = 100, .rows = 32, .widths = {2000}, .row_buckets = {8, 32}};
  const auto pipeline = replay_pipeline(streams, {});
  REQUIRE(pipeline.has_value());
  const BatchRule& batch = pipeline->options.batch;
  CHECK(pipeline->options.dtype == Element::f32);
  CHECK(batch.slots == 100);
  CHECK(batch.rows == 32);
  CHECK(batch.row_buckets == std::vector<std::uint32_t>{8, 32});
  CHECK(batch.width_buckets == std::vector<std::uint32_t>{2000});
  CHECK(batch.stateful);

  // With another rule, the widths follow from that.
  const auto other = replay_pipeline(streams, {.chunk = "size=3000"});
  REQUIRE(other.has_value());
  CHECK(other->options.batch.rows == 32);
  CHECK(other->options.batch.width_buckets == std::vector<std::uint32_t>{3000});
}

TEST_CASE("recorded batches that no pipeline can have are an error") {
  const recording::RecordedBatches good{.slots = 100, .rows = 32, .widths = {1600}};
  const auto refused = [&](const auto& change) {
    auto damaged = stream(1);
    change(damaged.meta.batches.emplace(good));
    return error_of({damaged}).starts_with("stream 1: its batches are impossible");
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& batches) { batches.slots = 1'000'000; }));
  CHECK(refused([](auto& batches) { batches.rows = 101; }));
  CHECK(refused([](auto& batches) { batches.widths = {1599}; }));
  CHECK_FALSE(refused([](auto& batches) {
    batches.rows = 101;
    batches.stateful = false;
  }));
  auto floats = stream(1);
  floats.meta.frames.element = Element::f32;
  floats.meta.batches = good;  // s16
  CHECK(error_of({floats}).starts_with("stream 1: its batches are impossible"));
}

TEST_CASE("streams that need different pipelines are refused with the two that differ") {
  auto other = stream(2);
  SECTION("pipeline") {
    other.meta.pipeline = "vad";
    CHECK(error_of({stream(1), other})
              .find("stream 1 and stream 2 are of the pipelines asr and "
                    "vad: select one with --pipeline") == 0);
  }
  SECTION("frames") {
    other.meta.frames.rate = 8000;
    CHECK(error_of({stream(1), other}).find("different types of frames") != std::string::npos);
  }
  SECTION("rule") {
    other.meta.rule = R"({"size":800})";
    CHECK(error_of({stream(1), other}).find("different rules") != std::string::npos);
    CHECK(error_of({stream(1), other}, {.chunk = "size=400"}).empty());
  }
}

TEST_CASE("a rule is given as for the command chunk") {
  const std::vector streams{stream(1)};
  const auto pipeline = replay_pipeline(streams, {.chunk = "size=50ms,left=10"});
  REQUIRE(pipeline.has_value());
  CHECK(pipeline->other_rule);
  CHECK(pipeline->options.chunk.spec == Spec{.size = 800, .left = 10});
  CHECK(pipeline->options.batch.width_buckets == std::vector<std::uint32_t>{810});
  CHECK(pipeline->options.batch.columns.context == 10);
  CHECK(error_of({stream(1)}, {.chunk = "size"}).find("--chunk: \"size\" must be") == 0);
  CHECK(error_of({stream(1)}, {.chunk = "sice=3"}).find("--chunk: ") == 0);
}

TEST_CASE("a configuration file sets slots, batches and dtype") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "new.toml") << R"([[pipeline]]
name = "new"
rate = 16000
slots = 8
dtype = "f32"
chunk = { size = "50ms" }
batch = { rows = 4, max_wait = "1ms" }
)";
  PipelineChoice choice;
  set_pipeline(choice, directory / "new.toml" + ":new");
  const std::vector streams{stream(1)};
  const auto pipeline = replay_pipeline(streams, choice);
  REQUIRE(pipeline.has_value());
  CHECK(pipeline->options.name == "new");
  CHECK(pipeline->options.batch.slots == 8);
  CHECK(pipeline->options.batch.rows == 4);
  CHECK(pipeline->options.dtype == Element::f32);
  // The rule is the recorded one.
  CHECK(pipeline->options.chunk.spec.size == 1600);
  CHECK(pipeline->options.batch.width_buckets == std::vector<std::uint32_t>{1600});
  CHECK(pipeline->note.find("has another chunk rule") != std::string::npos);

  auto other = stream(1);
  other.meta.frames.rate = 8000;
  CHECK(error_of({other}, choice).find("are not those of the recorded streams") !=
        std::string::npos);
  choice.name = "old";
  CHECK(error_of({stream(1)}, choice).find("has no pipeline old") != std::string::npos);
}

TEST_CASE("a pipeline is given by its name, or by a file and its name") {
  PipelineChoice choice;
  set_pipeline(choice, "asr");
  CHECK(choice.file.empty());
  CHECK(choice.name == "asr");
  set_pipeline(choice, "a:b.toml:asr");
  CHECK(choice.file == "a:b.toml");
  CHECK(choice.name == "asr");
}

TEST_CASE("a pipeline of a file selects its streams, if there are any") {
  auto other = stream(2);
  other.meta.pipeline = "vad";
  std::vector<recording::StreamParts> streams{{stream(1)}, {other}, {stream(3), stream(4)}};
  select_by_pipeline("new", streams);
  CHECK(numbers(streams) == std::vector<std::uint64_t>{1, 2, 3});
  select_by_pipeline("asr", streams);
  CHECK(numbers(streams) == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("a pipeline of a file that no stream has gets streams of one other pipeline") {
  auto other = stream(2);
  other.meta.pipeline = "vad";
  CHECK(error_of({stream(1), other}, {.file = "new.toml", .name = "new"})
            .find("stream 1 and stream 2 are of the pipelines asr and vad") == 0);
}

TEST_CASE("one notice counts the streams that are still being recorded") {
  CHECK(growing_notice(1) == "1 stream is still being recorded: replayed up to now");
  CHECK(growing_notice(3) == "3 streams are still being recorded: replayed up to now");
}
