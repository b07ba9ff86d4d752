// SPDX-License-Identifier: Apache-2.0
#include "service/config/pipeline_options.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "chunker/ready_row.h"
#include "chunker/row_layout.h"
#include "schemas/text.h"
#include "schemas/worker_messages.h"
#include "service/config/chunk_options.h"
#include "service/config/edge/edge_rules.h"
#include "service/config/memory_bounds.h"
#include "service/config/recording_options.h"
#include "service/config/toml/units.h"
#include "service/log/printable.h"
#include "streams/stream.h"

namespace millrace {

namespace {

using namespace std::chrono_literals;

std::string read_name(Section& section) {
  const std::string name = section.text("name", "default");
  if (!is_name(name)) section.wrong("name", "must be 1 to 128 characters of A-Z a-z 0-9 . _ -");
  return name;
}

Element read_element(Section& section, std::string_view key, Element fallback) {
  const auto name = section.one_of(key, std::string(name_of(fallback)), {"s16", "f32", "f16"});
  return value_named<Element>(name).value_or(fallback);
}

FrameType read_frames(Section& section) {
  FrameType frames;
  frames.features = section.has("dim");
  if (frames.features && section.has("channels"))
    section.wrong(
        "dim", "cannot be combined with channels: frames are features (dim) or audio (channels)");
  frames.rate = section.number("rate", frames.features ? 100 : 16'000, 1e6);
  if (!frames.features && frames.rate != std::floor(frames.rate)) {
    section.wrong("rate", "must be a whole number of audio samples per second");
    frames.rate = 16'000;  // the checks that follow need one that a resampler could have
  }
  const auto channels = section.count("channels", 1, 1, 256);
  const auto dim = section.count("dim", 1, 1, 65'535);
  frames.values = frames.features ? dim : channels;
  frames.element = read_element(section, "frames", frames.features ? Element::f32 : Element::s16);
  return frames;
}

Element read_dtype(Section& section, Element frames) {
  const Element dtype = read_element(section, "dtype", frames);
  if (dtype != frames && frames != Element::s16)
    section.wrong("dtype", "must be " + in_quotes(name_of(frames)) +
                               ", like frames: only s16 frames are converted");
  return dtype;
}

std::vector<std::uint32_t> read_buckets(Section& batch, std::string_view key) {
  auto buckets = batch.counts(key);
  if (std::ranges::adjacent_find(buckets, std::ranges::greater_equal()) != buckets.end())
    batch.wrong(key, "must be in ascending order");
  return buckets;
}

void check_row_buckets(Section& batch, const BatchRule& rule) {
  if (!rule.row_buckets.empty() && rule.row_buckets.back() != rule.rows)
    batch.wrong("row_buckets",
                "the last value must be rows, which is " + std::to_string(rule.rows));
}

static_assert(most_sizes <= worker_protocol::max_width_buckets);

std::vector<std::uint32_t> read_width_buckets(Section& batch, const ChunkRule& chunk) {
  auto widths = read_buckets(batch, "width_buckets");
  if (widths.empty()) return default_widths(chunk);
  if (widths.size() > worker_protocol::max_width_buckets)
    batch.wrong(
        "width_buckets",
        "must have at most " + std::to_string(worker_protocol::max_width_buckets) + " values");
  if (widths.back() < chunk.width())
    batch.wrong("width_buckets",
                "the last value must be at least the width of the widest row, "
                "which is " +
                    std::to_string(chunk.width()));
  return widths;
}

BatchRule read_batch(Section& section, const ChunkRule& chunk) {
  BatchRule rule;
  rule.stateful = section.one_of("state", "slot", {"slot", "none"}) == "slot";
  rule.slots = section.count("slots", 64, 1, most_slots);
  Section batch = section.section("batch", "a table, like { rows = 16, max_wait = \"2ms\" }");
  rule.row_buckets = read_buckets(batch, "row_buckets");
  const std::uint32_t default_rows =
      rule.row_buckets.empty() ? std::min(16u, rule.slots) : rule.row_buckets.back();
  rule.rows = batch.count("rows", default_rows, 1, most_slots);
  if (rule.stateful && rule.rows > rule.slots)
    batch.wrong(batch.has("rows") ? "rows" : "row_buckets",
                "must be at most slots, which is " + std::to_string(rule.slots) +
                    ": a stream has at most one row in a batch");
  check_row_buckets(batch, rule);
  rule.max_wait = batch.time("max_wait", 2ms, 0s, 1min);
  rule.width_buckets = read_width_buckets(batch, chunk);
  rule.columns = chunk.columns();
  batch.refuse_unknown();
  return rule;
}

// Over ZeroMQ a message contains whole frames. Features are sent as f32. Audio needs no check: a
// frame with the most channels fits into the smallest `message`.
void check_message(Section& section, const FrameType& frames, std::size_t message) {
  const std::size_t frame = frames.values * size_of(Element::f32);
  if (frames.features && frame > message)
    section.wrong("dim", "a frame takes " + std::to_string(frame) +
                             " bytes as f32; it must be at most limits.message, which is " +
                             readable_bytes(message));
}

std::uint64_t frames_in(Duration time, double rate) {
  return static_cast<std::uint64_t>(std::chrono::duration<double>(time).count() * rate);
}

void check_window(Section& section, const PipelineOptions& pipeline, Duration most) {
  const std::uint32_t width = pipeline.chunk.width();
  if (width <= pipeline.stream_frames) return;
  section.wrong("chunk", "a window has " + std::to_string(width) +
                             " frames; it must have at most " +
                             std::to_string(pipeline.stream_frames) +
                             ", as limits.stream_buffer is " + readable(most));
}

// A client that sends in real time must be shed before it is paused. So stream_buffer must hold the
// rows that are ready or at a worker, the window of the next row, and the frames that may wait.
void check_shedding(Section& section, const PipelineOptions& pipeline, Duration buffer) {
  if (!pipeline.shed_after) return;
  const ChunkRule& rule = pipeline.chunk;
  const std::uint32_t size = rule.sizes.sizes.empty() ? rule.spec.size : rule.sizes.sizes.largest();
  const std::size_t in_batch = pipeline.batch.stateful ? 1 : max_ready_rows;
  const auto rows = static_cast<double>(max_ready_rows + default_credits * in_batch);
  const double frames = rows * std::max(size, rule.spec.step) + rule.width();
  const std::chrono::duration<double> before(frames / pipeline.frames.rate);
  const Duration wait = *pipeline.shed_after + *pipeline.shed_after / Intake::shed_grains;
  const auto least = std::chrono::ceil<std::chrono::milliseconds>(before + wait);
  if (least > buffer)
    section.wrong("shed_after", "needs limits.stream_buffer of at least " + readable(least) +
                                    "; it is " + readable(buffer));
}

}  // namespace

PipelineOptions read_pipeline(Section& section, const LimitOptions& limits) {
  PipelineOptions pipeline;
  pipeline.name = read_name(section);
  pipeline.frames = read_frames(section);
  pipeline.dtype = read_dtype(section, pipeline.frames.element);
  pipeline.chunk = read_chunk(section, pipeline.frames);
  pipeline.endpoint = read_endpoint(section, pipeline.frames);
  pipeline.batch = read_batch(section, pipeline.chunk);
  pipeline.required = section.flag("required", true);
  pipeline.worker_wait = section.time("worker_wait", 30s, 0s, 1h);
  pipeline.bye_wait = section.time("bye_wait", 60s, 0s, 1h);
  pipeline.answer_wait = section.time("answer_wait", 10s, 100ms, 1h);
  pipeline.first_answer_wait =
      section.time("first_answer_wait", std::max<Duration>(120s, pipeline.answer_wait), 100ms, 1h);
  pipeline.stream_frames = frames_in(limits.stream_buffer, pipeline.frames.rate);
  pipeline.pause_frames = frames_in(limits.pause_buffer, pipeline.frames.rate);
  pipeline.pace = edge_rules(limits.is_public).pace;
  pipeline.longest_post = limits.text;
  if (section.has("shed_after")) pipeline.shed_after = section.time("shed_after", 1s, 1ms, 1h);
  pipeline.record = read_record(section);
  section.refuse_unknown();
  check_message(section, pipeline.frames, limits.message);
  check_window(section, pipeline, limits.stream_buffer);
  check_shedding(section, pipeline, limits.stream_buffer);
  return pipeline;
}

}  // namespace millrace
