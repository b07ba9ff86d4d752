// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "monitoring/collect.h"

namespace millrace {

namespace {

using Pipelines = std::vector<PipelineSource>;

Labels labels_of(const PipelineSource& pipeline) { return {{"pipeline", pipeline.name}}; }

// Adds one metric per pipeline.
template <class Stats, class Which>
void add_all(Families& into, const Pipelines& pipelines, Shards<Stats> PipelineSource::*shards,
             Which which) {
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), sum(pipeline.*shards, which));
}

template <class Stats>
void add_all(Families& into, const Pipelines& pipelines, Shards<Stats> PipelineSource::*shards,
             Histogram Stats::*which, double per) {
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), histograms(pipeline.*shards, which), per);
}

template <class Stats, class Of, class Enum>
void add_all(Families& into, const Pipelines& pipelines, Shards<Stats> PipelineSource::*shards,
             std::string_view key, Labelled<Counter, Enum> Of::*which, Enum first = Enum{}) {
  for (const auto& pipeline : pipelines)
    add_each(into, labels_of(pipeline), key, pipeline.*shards, which, first);
}

constexpr auto of_streams = &PipelineSource::streams;
constexpr auto of_lanes = &PipelineSource::lanes;

Labels labels_of(const PipelineSource& pipeline, std::string_view stage) {
  return {{"pipeline", pipeline.name}, {"stage", std::string(stage)}};
}

Shards<BatchStats> batches_of(const PipelineSource& pipeline) {
  Shards<BatchStats> batches;
  for (const LaneStats* lane : pipeline.lanes) batches.push_back(&lane->batch);
  return batches;
}

void add_all(Families& into, const Pipelines& pipelines, Counter BatchStats::*which) {
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), sum(batches_of(pipeline), which));
}

void collect_rows(const Pipelines& pipelines, Families& into) {
  into.begin_counter("millrace_chunks_total", "Rows cut from streams.");
  add_all(into, pipelines, of_streams, "kind", &StreamStats::rows);
  into.begin_counter("millrace_chunk_frames_padded_total",
                     "Padding frames in rows narrower than the batch.");
  add_all(into, pipelines, &BatchStats::rows_frames_padded);
  into.begin_gauge("millrace_chunk_buffer_bytes", "Bytes held in the frame buffers of streams.");
  double bytes = 0;
  for (const auto& pipeline : pipelines) bytes += sum(pipeline.streams, &StreamStats::buffer);
  into.add({}, bytes);
}

void collect_stage_waits(const Pipelines& pipelines, Families& into) {
  into.begin_histogram("millrace_queue_wait_seconds", "Time that a row spent in a stage.");
  for (const auto& pipeline : pipelines)
    for (int i = 0; i < stage_count; ++i) {
      const auto which = [i](const StreamStats& stats) -> const Histogram& {
        return stats.stages[static_cast<std::size_t>(i)];
      };
      into.add(labels_of(pipeline, stage_names[static_cast<std::size_t>(i)]),
               histograms(pipeline.streams, which), per_second);
    }
}

// The rows between two threads. Callers read `received` before `sent`, so that it is not the larger
// one.
double under_way(double received, double sent) { return std::max(0.0, sent - received); }

double rows_for_batches(const PipelineSource& pipeline) {
  const double received = sum(pipeline.lanes, &LaneStats::received);
  double cut = 0;
  for (const RowKind kind : {RowKind::full, RowKind::cut, RowKind::marker})
    cut += sum_of(pipeline.streams, &StreamStats::rows, kind);
  return under_way(received, cut) + sum_of(pipeline.lanes, &LaneStats::items, LaneQueue::batch);
}

double unwritten_results(const PipelineSource& pipeline) {
  const double received = sum(pipeline.streams, &StreamStats::answered);
  const double answered = sum_of(pipeline.lanes, &LaneStats::results, ResultStatus::ok) +
                          sum_of(pipeline.lanes, &LaneStats::results, ResultStatus::error);
  return under_way(received, answered) + sum(pipeline.streams, &StreamStats::results);
}

void collect_queues(const Pipelines& pipelines, Families& into) {
  into.begin_gauge(
      "millrace_queue_items",
      "Rows waiting for a batch (batch), handed over and not done (worker), or with an "
      "unwritten result (result).");
  for (const auto& pipeline : pipelines) {
    into.add(labels_of(pipeline, "batch"), rows_for_batches(pipeline));
    into.add(labels_of(pipeline, "worker"),
             sum_of(pipeline.lanes, &LaneStats::items, LaneQueue::worker));
    into.add(labels_of(pipeline, "result"), unwritten_results(pipeline));
  }
  into.begin_gauge("millrace_queue_capacity_items", "Most rows that the stage can hold.");
  for (const auto& pipeline : pipelines)
    add_each(into, labels_of(pipeline), "stage", pipeline.lanes, &LaneStats::capacity);
}

// The other reason belongs to a feature that the service does not have yet.
constexpr ResetReason given_reasons[] = {ResetReason::start,    ResetReason::client,
                                         ResetReason::endpoint, ResetReason::gap,
                                         ResetReason::overflow, ResetReason::worker_lost};

void collect_resets(const Pipelines& pipelines, Families& into) {
  into.begin_counter("millrace_stream_resets_total", "Rows with a RESET.");
  for (const auto& pipeline : pipelines)
    for (const ResetReason reason : given_reasons) {
      Labels labels = labels_of(pipeline);
      labels.push_back({"reason", std::string(name_of(reason))});
      const auto which = [reason](const StreamStats& stats) -> const Counter& {
        return stats.resets[reason];
      };
      into.add(std::move(labels), sum(pipeline.streams, which));
    }
}

void collect_sources(const Pipelines& pipelines, Families& into) {
  into.begin_counter("millrace_endpoints_total", "Endpoints that took effect, by cause.");
  add_all(into, pipelines, of_streams, "by", &StreamStats::endpoints);
  into.begin_counter("millrace_endpoints_late_total", "Endpoints of workers without effect.");
  add_all(into, pipelines, of_streams, &StreamStats::endpoints_late);
  into.begin_counter("millrace_size_changes_total", "Changes of a stream's chunk size.");
  add_all(into, pipelines, of_streams, "direction", &StreamStats::size_changes);
}

void collect_results(const Pipelines& pipelines, Families& into) {
  into.begin_counter("millrace_results_total", "Results routed back to streams.");
  add_all(into, pipelines, of_lanes, "status", &LaneStats::results);
  into.begin_counter("millrace_results_dropped_total", "Results not delivered.");
  add_all(into, pipelines, of_streams, "reason", &StreamStats::dropped);
  into.begin_counter("millrace_messages_total", "Messages of workers to clients.");
  add_all(into, pipelines, of_lanes, "status", &LaneStats::messages);
  into.begin_histogram("millrace_result_latency_seconds",
                       "Time from reading the last frame of a row to writing its result.");
  add_all(into, pipelines, of_streams, &StreamStats::latency, per_second);
}

// The age of the oldest batch, over all lanes, that is handed over and not done.
double oldest_batch(const Shards<LaneStats>& lanes, Time now) {
  Time oldest = now;
  for (const LaneStats* lane : lanes)
    if (const auto at = lane->oldest.value(); at != 0) oldest = std::min(oldest, from_wire(at));
  return std::chrono::duration<double>(now - oldest).count();
}

}  // namespace

void collect_streams(const Pipelines& pipelines, Families& into) {
  into.begin_counter("millrace_ingest_audio_seconds_total",
                     "Accepted audio or features, in seconds.");
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), sum(pipeline.streams, &StreamStats::frames) / pipeline.rate);
  into.begin_counter("millrace_ingest_values_clamped_total",
                     "Values clamped to the range of the pipeline's frames.");
  add_all(into, pipelines, of_streams, &StreamStats::clamped);
  into.begin_gauge("millrace_streams", "Open streams.");
  add_all(into, pipelines, of_streams, &StreamStats::open);
  into.begin_gauge("millrace_streams_detached",
                   "Open streams whose connection was lost, and that wait for their client.");
  add_all(into, pipelines, of_streams, &StreamStats::detached);
  into.begin_gauge("millrace_slots", "Slots of the pipeline's workers, used by a stream or free.");
  for (const auto& pipeline : pipelines)
    add_each(into, labels_of(pipeline), "state", pipeline.lanes, &LaneStats::slots);
  into.begin_counter("millrace_streams_opened_total", "Streams opened.");
  add_all(into, pipelines, of_streams, &StreamStats::opened);
  into.begin_counter("millrace_streams_resumed_total",
                     "Streams that a client has continued over a new connection.");
  add_all(into, pipelines, of_streams, "state", &StreamStats::resumed);
  into.begin_counter("millrace_streams_closed_total", "Streams closed.");
  add_all(into, pipelines, of_streams, "reason", &StreamStats::closed);
  collect_resets(pipelines, into);
  into.begin_counter("millrace_stream_lost_audio_seconds_total",
                     "Lost audio or features, in seconds.");
  for (const auto& pipeline : pipelines)
    add_each(into, labels_of(pipeline), "reason", pipeline.streams, &StreamStats::lost, Loss::gap,
             pipeline.rate);
  into.begin_histogram("millrace_stream_duration_seconds",
                       "Duration of a stream, observed at its end.");
  add_all(into, pipelines, of_streams, &StreamStats::duration, per_second);
}

void collect_batches(const Pipelines& pipelines, Families& into) {
  collect_sources(pipelines, into);
  collect_rows(pipelines, into);
  collect_stage_waits(pipelines, into);
  collect_queues(pipelines, into);
  into.begin_counter("millrace_batches_total", "Batches closed.");
  for (const auto& pipeline : pipelines)
    add_each(into, labels_of(pipeline), "trigger", batches_of(pipeline), &BatchStats::batches);
  into.begin_histogram("millrace_batch_rows", "Rows with frames per batch.");
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), histograms(batches_of(pipeline), &BatchStats::rows_per_batch));
  into.begin_counter("millrace_batch_rows_offered_total", "Rows that the batches could have held.");
  add_all(into, pipelines, &BatchStats::offered);
  into.begin_counter("millrace_batch_rows_total", "Rows with frames in batches.");
  add_all(into, pipelines, &BatchStats::rows);
  into.begin_counter("millrace_batch_marks_total", "Marker rows in batches.");
  add_all(into, pipelines, &BatchStats::marks);
  into.begin_counter("millrace_batch_frames_total", "Frames in batches, padding included.");
  add_all(into, pipelines, &BatchStats::frames);
  into.begin_counter("millrace_batch_frames_padded_total", "Padding frames in batches.");
  add_all(into, pipelines, &BatchStats::frames_padded);
}

void collect_workers(const Pipelines& pipelines, Time now, Families& into) {
  into.begin_gauge("millrace_workers", "Attached workers.");
  add_all(into, pipelines, of_lanes, &LaneStats::workers);
  into.begin_counter("millrace_worker_wait_seconds_total", "Time that workers had no batch.");
  for (const auto& pipeline : pipelines) {
    double waited = 0;
    for (const LaneStats* lane : pipeline.lanes) waited += static_cast<double>(lane->wait.sum());
    into.add(labels_of(pipeline), waited / per_second);
  }
  into.begin_histogram("millrace_worker_wait_duration_seconds",
                       "Time that a worker without a batch waited for its next one.");
  add_all(into, pipelines, of_lanes, &LaneStats::wait, per_second);
  into.begin_histogram("millrace_worker_compute_duration_seconds",
                       "Time from batch taken to batch done, reported by the worker.");
  add_all(into, pipelines, of_lanes, &LaneStats::compute, per_second);
  into.begin_gauge("millrace_worker_inflight_batches", "Batches handed over and not yet done.");
  add_all(into, pipelines, of_lanes, &LaneStats::in_flight);
  into.begin_gauge("millrace_pending_rows", "Rows whose answers follow later than their batch.");
  add_all(into, pipelines, of_lanes, &LaneStats::pending);
  into.begin_gauge("millrace_worker_oldest_batch_seconds",
                   "Age of the oldest batch that is not done.");
  for (const auto& pipeline : pipelines)
    into.add(labels_of(pipeline), oldest_batch(pipeline.lanes, now));
  into.begin_counter("millrace_worker_failures_total", "Workers lost.");
  add_all(into, pipelines, of_lanes, "reason", &LaneStats::failures);
  into.begin_counter("millrace_watcher_batches_dropped_total",
                     "Copies of batches dropped because a watcher was too slow.");
  add_all(into, pipelines, of_lanes, &LaneStats::watcher_misses);
  collect_results(pipelines, into);
}

}  // namespace millrace
