// SPDX-License-Identifier: Apache-2.0
#include "service/config/options.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;

namespace {

Options parsed(std::string_view text) {
  const auto result = parse_options(text, "m.toml");
  INFO((result ? "" : result.error()));
  REQUIRE(result.has_value());
  return result->options;
}

PipelineOptions pipeline(const std::string& keys) {
  return parsed("[[pipeline]]\n" + keys).pipelines.at(0);
}

}  // namespace

TEST_CASE("an empty configuration has defaults that work, on loopback") {
  const Options options = parsed("");
  CHECK(!options.listen.workers.empty());
  CHECK(options.listen.threads >= 1);
  REQUIRE(options.pipelines.size() == 1);
  const PipelineOptions& pipeline = options.pipelines[0];
  CHECK(pipeline.name == "default");
  CHECK(pipeline.chunk == ChunkRule{.spec = {.size = 1600}});
  CHECK(pipeline.stream_frames == 80'000);
  CHECK(pipeline.pause_frames == 1'920'000);
}

TEST_CASE("the ZeroMQ listener can be off") {
  CHECK(parsed("[listen]\nzeromq = \"off\"").listen.zeromq == std::nullopt);
  CHECK(parsed("[listen]\nzeromq = \"tcp://[::1]:0\"").listen.zeromq == TcpAddress{"::1", 0});
}

TEST_CASE("dim makes features, whose rate may be fractional") {
  const PipelineOptions features = pipeline("dim = 80\nrate = 12.5\nchunk = { size = 4 }");
  CHECK(features.frames == FrameType{Element::f32, 80, 12.5, true});
  CHECK(features.dtype == Element::f32);
  CHECK(features.stream_frames == 62);
}

TEST_CASE("a preset sets the chunk rule") {
  CHECK(pipeline("chunk = { preset = \"silero-16k\" }").chunk.spec.size == 512);
}

TEST_CASE("the default of rows follows the slots and the buckets") {
  CHECK(pipeline("slots = 4").batch.rows == 4);
  CHECK(pipeline("batch = { row_buckets = [1, 20] }").batch.rows == 20);
}

TEST_CASE("the first answer of a worker has at least the time of the others") {
  CHECK(pipeline("").first_answer_wait == 120s);
  CHECK(pipeline("answer_wait = \"5min\"").first_answer_wait == 5min);
}

TEST_CASE("the default of width_buckets is the width of the widest row") {
  const std::string chunk = "chunk = { size = 160, first = 200, left = 40 }\n";
  using Widths = std::vector<std::uint32_t>;
  CHECK(pipeline(chunk).batch.width_buckets == Widths{240});
  CHECK(pipeline(chunk).batch.columns.context == 40);
  CHECK(pipeline(chunk + "batch = { width_buckets = [80, 240] }").batch.width_buckets ==
        Widths{80, 240});
  CHECK(pipeline(chunk + "batch = { width_buckets = [512] }").batch.width_buckets == Widths{512});
}

TEST_CASE(
    "with sizes, the default of width_buckets is the width of each, and of a range the widest") {
  using Widths = std::vector<std::uint32_t>;
  CHECK(pipeline("chunk = { size = 160, sizes = [80, 160, 320], first = 200, left = 40 }")
            .batch.width_buckets == Widths{160, 240, 400});
  CHECK(pipeline("chunk = { rule = \"random\", size = 160, left = 40, "
                 "sizes = { from = 80, to = 8000, step = 80 } }")
            .batch.width_buckets == Widths{8040});
}

TEST_CASE("devices can be all available ones, none, or those listed") {
  CHECK(parsed("").gpu == DeviceRule{});
  const DeviceRule host = parsed("[gpu]\ndevices = \"host\"\npageable = \"refuse\"").gpu;
  CHECK(host.use == DeviceRule::Use::host);
  CHECK(!host.pageable);
  const DeviceRule listed =
      parsed("[gpu]\ndevices = [\"cuda:1\", \"GPU-5a1c\", \"MIG-7b\"]\nslab_bytes = \"64MiB\"").gpu;
  CHECK(listed.use == DeviceRule::Use::listed);
  CHECK(listed.listed == std::vector<std::string>{"cuda:1", "GPU-5a1c", "MIG-7b"});
  CHECK(listed.slab_bytes == 67'108'864);
  CHECK(listed.pageable);
}

TEST_CASE("the default of [gpu] slab_bytes is that of the host") {
  CHECK(parsed("[limits]\nslab_bytes = \"3GiB\"").gpu.slab_bytes == 3ull << 30);
  CHECK(parsed("[limits]\nslab_bytes = \"3MiB\"").gpu.slab_bytes == 4 << 20);  // in whole blocks
}

TEST_CASE("sizes are a list of lengths, in times or frames") {
  const PipelineOptions fixed = pipeline("chunk = { size = 1280, sizes = [\"80ms\", 2560] }");
  CHECK(fixed.chunk.sizes == SizeRule{.sizes = SizeList({1280, 2560})});
  CHECK(pipeline("chunk = { rule = \"adaptive\", size = 1280, sizes = [1280, 2560] }")
            .chunk.sizes.by == SizeRule::By::adaptive);
}

TEST_CASE("sizes that are drawn may be a range") {
  const PipelineOptions drawn = pipeline(
      "chunk = { rule = \"random\", size = \"80ms\", seed = 7, per = \"stream\", "
      "sizes = { from = \"40ms\", to = \"1s\", step = 640 } }");
  CHECK(drawn.chunk.sizes ==
        SizeRule{SizeRule::By::random, SizeList(640, 16000, 640), 7, SizeRule::Per::stream});
}

TEST_CASE("an endpoint is found by the voice detector if nothing else is set") {
  const EndpointRule rule{.by = EndpointRule::By::vad,
                          .silence = 12'800,
                          .before_speech = std::nullopt,
                          .max = 320'000,
                          .sensitivity = 2,
                          .on_endpoint = EndpointRule::On::segment};
  CHECK(pipeline("endpoint = {}").endpoint == rule);
  CHECK(pipeline("endpoint = { before_speech = \"off\" }").endpoint == rule);
}

TEST_CASE("the keys of endpoint are read") {
  CHECK(
      pipeline("rate = 8000\nendpoint = { by = \"vad\", silence = \"300ms\", before_speech = 8000, "
               "max = \"5s\", sensitivity = 0, on_endpoint = \"reset\" }")
          .endpoint == EndpointRule{.by = EndpointRule::By::vad,
                                    .silence = 2400,
                                    .before_speech = 8000,
                                    .max = 40'000,
                                    .sensitivity = 0,
                                    .on_endpoint = EndpointRule::On::reset});
  CHECK(pipeline("endpoint = { by = \"worker\" }").endpoint ==
        EndpointRule{.by = EndpointRule::By::worker, .max = 320'000});
}

TEST_CASE("workers and length end segments at any rate, also of features") {
  CHECK(pipeline("rate = 24000\nendpoint = { by = \"length\", max = 1 }").endpoint ==
        EndpointRule{.by = EndpointRule::By::length, .max = 1});
  CHECK(pipeline("dim = 80\nrate = 12.5\nchunk = { size = 4 }\nendpoint = { by = \"worker\" }")
            .endpoint == EndpointRule{.by = EndpointRule::By::worker, .max = 250});
}
