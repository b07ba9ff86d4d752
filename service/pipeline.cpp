// SPDX-License-Identifier: Apache-2.0
#include "service/pipeline.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "workers/protocol.h"

namespace millrace {

namespace {

// As a worker reads it in Welcome: every key, in frames.
std::string json_of(const ChunkRule& rule) {
  const Spec& spec = rule.spec;
  return serialize(boost::json::object{{"size", spec.size},
                                       {"step", spec.step},
                                       {"first", spec.first},
                                       {"left", spec.left},
                                       {"right", spec.right},
                                       {"tail", name_of(spec.tail)},
                                       {"min", spec.min},
                                       {"align", name_of(rule.align)},
                                       {"pad", name_of(rule.pad)}});
}

HubSettings hub_settings(const PipelineOptions& options, std::uint64_t streams,
                         PipelineCalls calls) {
  const worker_protocol::Heartbeats heartbeats;
  const Spec& spec = options.chunk.spec;
  HubSettings settings;
  settings.pipeline = options.name;
  settings.rule = {.batch = options.batch,
                   .worker_wait = options.worker_wait,
                   .bye_wait = options.bye_wait,
                   .patience = {.silence = heartbeats.silence,
                                .answer = worker_protocol::answer_due,
                                .first_answer = worker_protocol::first_answer_due}};
  settings.seats.frames = options.frames;
  settings.seats.shape = {.format = {.frames = options.frames.element,
                                     .dtype = options.dtype,
                                     .values = options.frames.values,
                                     .context = options.chunk.align == Align::body ? spec.left : 0,
                                     .repeat = options.chunk.pad == Pad::repeat},
                          .slots = options.batch.slots,
                          .rows = options.batch.rows,
                          .width = spec.width()};
  settings.seats.chunk = json_of(options.chunk);
  settings.streams = streams;
  settings.tail_rows = (spec.width() - spec.left) / (spec.step > 0 ? spec.step : spec.size) + 1;
  settings.log = std::move(calls.log);
  settings.device_lost = std::move(calls.device_lost);
  return settings;
}

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, net::io_context& home, SlabSupply supply,
                   std::uint64_t streams, PipelineCalls calls)
    : options_(options),
      home_(home),
      hub_(home, hub_settings(options, streams, std::move(calls)), supply, stats_) {}

}  // namespace millrace
