// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/pipeline.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <type_traits>
#include <utility>

#include "schemas/worker_protocol.h"

namespace millrace {

namespace {

// The JSON text of a chunk rule for the message Welcome: every key, lengths in frames.
std::string json_of(const ChunkRule& rule) {
  boost::json::object keys;
  for_each_key(rule, [&](std::string_view key, const auto& value) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>)
      keys[key] = name_of(value);
    else
      keys[key] = value;
  });
  return serialize(keys);
}

HubSettings hub_settings(const PipelineOptions& options, std::uint64_t streams,
                         PipelineCallbacks callbacks) {
  const worker_protocol::Heartbeats heartbeats;
  HubSettings settings;
  settings.pipeline = options.name;
  settings.rule = {.batch = options.batch,
                   .worker_wait = options.worker_wait,
                   .bye_wait = options.bye_wait,
                   .timeouts = {.silence = heartbeats.silence,
                                .answer = worker_protocol::answer_due,
                                .first_answer = worker_protocol::first_answer_due}};
  settings.welcome.frames = options.frames;
  settings.welcome.shape = {.format = {.frames = options.frames.element,
                                       .dtype = options.dtype,
                                       .values = options.frames.values,
                                       .context = options.chunk.columns().context,
                                       .repeat = options.chunk.pad == Pad::repeat},
                            .slots = options.batch.slots,
                            .rows = options.batch.rows,
                            .width = options.batch.width_buckets.back()};
  settings.welcome.chunk = json_of(options.chunk);
  settings.welcome.width_buckets = options.batch.width_buckets;
  settings.streams = streams;
  settings.tail_rows =
      (options.chunk.width() - options.chunk.spec.left) / options.chunk.shortest_step() + 1;
  settings.log = std::move(callbacks.log);
  settings.device_lost = std::move(callbacks.device_lost);
  return settings;
}

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, net::io_context& home, SlabSupply supply,
                   std::uint64_t streams, PipelineCallbacks callbacks)
    : options_(options),
      home_(home),
      hub_(home, hub_settings(options, streams, std::move(callbacks)), supply, stats_) {}

}  // namespace millrace
