// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_pipeline.h"

#include <algorithm>
#include <chrono>

#include "chunker/row_layout.h"
#include "chunker/rule_json.h"
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

ReplayPipeline of_defaults(const RecordedStream& stream) {
  ReplayPipeline pipeline;
  pipeline.options = parse_options("", "")->options.pipelines.front();
  pipeline.options.name = stream.meta.pipeline;
  pipeline.options.frames = stream.meta.frames;
  pipeline.options.dtype = stream.meta.frames.element;
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
  auto pipeline = choice.file.empty() ? Result<ReplayPipeline, std::string>(of_defaults(first))
                                      : of_file(choice, frames);
  if (!pipeline) return pipeline.error();
  PipelineOptions& options = pipeline->options;
  if (options.chunk != *rule) {
    if (!choice.file.empty())
      pipeline->note = "pipeline " + choice.name + " of " + choice.file +
                       " has another chunk rule; it is not used: the rule is " +
                       (choice.chunk.empty() ? "the recorded one" : "that of --chunk");
    options.chunk = *rule;
    options.batch.width_buckets = default_widths(*rule);
    options.batch.columns = rule->columns();
  }
  options.endpoint.reset();
  options.record.reset();
  options.worker_wait = any_time;
  pipeline->other_rule = !choice.chunk.empty();
  return pipeline;
}

void set_pipeline(PipelineChoice& into, const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon != text.npos) into.file = text.substr(0, colon);
  into.name = colon == text.npos ? text : text.substr(colon + 1);
}

}  // namespace millrace
