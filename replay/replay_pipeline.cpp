// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "chunker/row_layout.h"
#include "chunker/rule_json.h"
#include "schemas/worker_messages.h"
#include "service/config/options.h"

namespace millrace {
namespace {

using recording::RecordedStream;

// A stream of a replay waits for a worker as long as the replay runs.
constexpr Duration any_time = std::chrono::hours(24 * 365);

RuleTarget target_of(const FrameType& frames) {
  return {.rate = frames.rate, .features = frames.features};
}

std::string text_of(const RecordedStream& stream) {
  return "stream " + std::to_string(stream.meta.number);
}

// The first two streams that differ, in one line.
Result<void, std::string> check_alike(std::span<const RecordedStream> streams,
                                      const PipelineChoice& choice) {
  const RecordedStream& first = streams.front();
  for (const RecordedStream& stream : streams) {
    const std::string both = text_of(first) + " and " + text_of(stream);
    if (stream.meta.pipeline != first.meta.pipeline)
      return both + " are of the pipelines " + first.meta.pipeline + " and " +
             stream.meta.pipeline +
             (choice.file.empty() ? ": select one with --pipeline NAME"
                                  : ": select streams of one by number");
    if (stream.meta.frames != first.meta.frames)
      return both + " have different types of frames: select streams of one type, by number";
    if (stream.meta.rule != first.meta.rule && choice.chunk.empty())
      return both +
             " were cut by different rules: select streams of one rule by number, or give "
             "--chunk";
  }
  return {};
}

Result<ChunkRule, std::string> recorded_rule(const RecordedStream& stream) {
  const auto rule = rule_from_json(stream.meta.rule, target_of(stream.meta.frames));
  if (!rule) return text_of(stream) + ": its chunk rule is invalid: " + rule.error().message;
  return *rule;
}

Result<ChunkRule, std::string> given_rule(const std::string& text, const FrameType& frames) {
  const auto keys = split_rule_keys(text);
  if (!keys) return "--chunk: " + keys.error();
  const auto rule = parse_rule(*keys, target_of(frames));
  if (!rule) return "--chunk: " + rule.error().message;
  return *rule;
}

Result<ReplayPipeline, std::string> of_file(const PipelineChoice& choice, const FrameType& frames) {
  const auto configuration = load_options(choice.file);
  if (!configuration) return configuration.error();
  const Options& options = configuration->options;
  const auto found = std::ranges::find(options.pipelines, choice.name, &PipelineOptions::name);
  if (found == options.pipelines.end()) return choice.file + ": has no pipeline " + choice.name;
  if (found->frames != frames)
    return choice.file + ": the frames of pipeline " + choice.name +
           " (rate, channels or dim, frames) are not those of the recorded streams";
  return ReplayPipeline{
      .options = *found, .gpu = options.gpu, .slab_bytes = options.limits.slab_bytes};
}

// The batches of the newest stream that has them: the pipeline may have been changed since the
// older ones. Nullopt: all were recorded by an earlier version.
const RecordedStream* newest_with_batches(std::span<const RecordedStream> streams) {
  const auto known = [](const RecordedStream& stream) { return stream.meta.batches.has_value(); };
  const auto newest = std::find_if(streams.rbegin(), streams.rend(), known);
  return newest == streams.rend() ? nullptr : &*newest;
}

// Also sets the widths of batches: those that follow from the rule.
void use_rule(PipelineOptions& options, const ChunkRule& rule) {
  options.chunk = rule;
  options.batch.width_buckets = default_widths(rule);
  options.batch.columns = rule.columns();
}

// True if the pipeline can have these batches: the recording may be damaged.
bool fit(const recording::RecordedBatches& batches, const PipelineOptions& pipeline) {
  return batches.slots <= most_slots && batches.rows <= most_slots &&
         (!batches.stateful || batches.rows <= batches.slots) &&
         batches.widths.size() <= worker_protocol::max_width_buckets &&
         batches.widths.back() >= pipeline.chunk.width() &&
         (batches.dtype == pipeline.frames.element || pipeline.frames.element == Element::s16);
}

// The pipeline from which the streams were recorded, with this rule; what was not recorded has its
// default. The recorded widths are those of the recorded rule.
Result<ReplayPipeline, std::string> of_recording(std::span<const RecordedStream> streams,
                                                 const ChunkRule& rule, bool other_rule) {
  const recording::StreamMeta& meta = streams.front().meta;
  ReplayPipeline pipeline;
  PipelineOptions& options = pipeline.options;
  options = parse_options("", "")->options.pipelines.front();
  options.name = meta.pipeline;
  options.frames = meta.frames;
  options.dtype = meta.frames.element;
  use_rule(options, rule);
  const RecordedStream* const newest = newest_with_batches(streams);
  if (!newest) return pipeline;
  recording::RecordedBatches batches = *newest->meta.batches;
  if (other_rule) batches.widths = options.batch.width_buckets;
  if (!fit(batches, options))
    return text_of(*newest) + ": its batches are impossible: give --pipeline FILE:NAME";
  options.dtype = batches.dtype;
  options.batch.slots = batches.slots;
  options.batch.rows = batches.rows;
  options.batch.row_buckets = std::move(batches.row_buckets);
  options.batch.width_buckets = std::move(batches.widths);
  options.batch.stateful = batches.stateful;
  return pipeline;
}

}  // namespace

Result<ReplayPipeline, std::string> replay_pipeline(std::span<const RecordedStream> streams,
                                                    const PipelineChoice& choice) {
  const RecordedStream& first = streams.front();
  const FrameType& frames = first.meta.frames;
  if (const auto alike = check_alike(streams, choice); !alike) return alike.error();
  const auto rule = choice.chunk.empty() ? recorded_rule(first) : given_rule(choice.chunk, frames);
  if (!rule) return rule.error();
  auto pipeline = choice.file.empty() ? of_recording(streams, *rule, !choice.chunk.empty())
                                      : of_file(choice, frames);
  if (!pipeline) return pipeline.error();
  PipelineOptions& options = pipeline->options;
  if (options.chunk != *rule) {
    if (!choice.file.empty())
      pipeline->note = "pipeline " + choice.name + " of " + choice.file +
                       " has another chunk rule; it is not used: the rule is " +
                       (choice.chunk.empty() ? "the recorded one" : "that of --chunk");
    use_rule(options, *rule);
  }
  options.endpoint.reset();
  options.record.reset();
  options.worker_wait = any_time;
  options.longest_post = LimitOptions::longest_text;  // the recorded service's is not known
  pipeline->other_rule = !choice.chunk.empty();
  return pipeline;
}

void set_pipeline(PipelineChoice& into, const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon != text.npos) into.file = text.substr(0, colon);
  into.name = colon == text.npos ? text : text.substr(colon + 1);
}

}  // namespace millrace
