// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/pipeline.h"

#include <utility>

#include "chunker/rule_json.h"
#include "schemas/worker_protocol.h"

namespace millrace {

HubSettings hub_settings(const PipelineOptions& options, std::uint64_t streams,
                         PipelineCallbacks callbacks) {
  const worker_protocol::Heartbeats heartbeats;
  HubSettings settings;
  settings.pipeline = options.name;
  settings.rule = {.batch = options.batch,
                   .worker_wait = options.worker_wait,
                   .bye_wait = options.bye_wait,
                   .timeouts = {.silence = heartbeats.silence,
                                .answer = options.answer_wait,
                                .first_answer = options.first_answer_wait}};
  settings.welcome.frames = options.frames;
  settings.welcome.shape = {.format = {.frames = options.frames.element,
                                       .dtype = options.dtype,
                                       .values = options.frames.values,
                                       .context = options.chunk.columns().context,
                                       .repeat = options.chunk.pad == Pad::repeat},
                            .slots = options.batch.slots,
                            .rows = options.batch.rows,
                            .width = options.batch.width_buckets.back()};
  settings.welcome.chunk = to_json(options.chunk);
  settings.welcome.width_buckets = options.batch.width_buckets;
  settings.welcome.row_buckets = options.batch.row_buckets;
  settings.streams = streams;
  settings.longest_row_posts = waiting_posts * options.longest_post;
  settings.tail_rows =
      (options.chunk.width() - options.chunk.spec.left) / options.chunk.shortest_step() + 1;
  settings.log = std::move(callbacks.log);
  settings.device_lost = std::move(callbacks.device_lost);
  return settings;
}

Pipeline::Pipeline(const PipelineOptions& options, net::io_context& home, SlabSupply supply,
                   std::uint64_t streams, PipelineCallbacks callbacks)
    : options_(options),
      home_(home),
      hub_(home, hub_settings(options, streams, std::move(callbacks)), supply, stats_) {}

}  // namespace millrace
