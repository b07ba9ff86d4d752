// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/thread_recording.h"

#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "chunker/body_size.h"
#include "chunker/rule_json.h"
#include "schemas/json_text.h"
#include "service/log/wall_clock.h"
#include "service/recorder/stream_recording.h"

namespace millrace {

namespace {

// The client's format as a JSON object, with the names of the parameters of a request.
std::string to_json(const ClientFormat& format, bool features) {
  std::string json = R"({"format":)";
  append_string(json, name_of(format.format));
  json += R"(,"rate":)";
  append_number(json, format.rate);
  json += features ? R"(,"dim":)" : R"(,"channels":)";
  append_number(json, std::uint64_t{format.values});
  if (const auto* one = std::get_if<OneChannel>(&format.channel)) {
    json += R"(,"channel":)";
    append_number(json, std::uint64_t{one->index});
  } else if (std::holds_alternative<MeanOfChannels>(format.channel)) {
    json += R"(,"channel":"mean")";
  }
  return json + "}";
}

recording::RecordedBatches batches_of(const PipelineOptions& pipeline) {
  const BatchRule& rule = pipeline.batch;
  return {.dtype = pipeline.dtype,
          .slots = rule.slots,
          .rows = rule.rows,
          .widths = rule.width_buckets,
          .row_buckets = rule.row_buckets,
          .stateful = rule.stateful};
}

}  // namespace

bool selects(const RecordRule& rule, std::string_view stream) {
  // Rows are numbered from 0: no size is drawn with this number.
  constexpr auto index = std::numeric_limits<std::uint64_t>::max();
  return rule.share >= 1 ||
         static_cast<double>(drawn_number(draw_key(0, stream), index)) < rule.share * 0x1p64;
}

ThreadRecording::ThreadRecording(recording::PagePool& pages, std::size_t thread,
                                 std::atomic<std::uint64_t>& next_stream, Duration commit)
    : pages_(pages, thread, stats_), next_stream_(next_stream), commit_(commit) {}

std::unique_ptr<StreamTap> ThreadRecording::tap(
    const StreamRequest& request, const PipelineOptions& pipeline, const ClientFormat& format,
    Time now, const std::optional<recording::ResumableKey>& resumable) {
  if (!pipeline.record || !request.record || !selects(*pipeline.record, request.id)) return nullptr;
  // Relaxed: only the number counts.
  if (next_stream_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::uint64_t number = next_stream_.fetch_add(1, std::memory_order_relaxed);
  auto meta = std::make_unique<recording::StreamMeta>(
      recording::StreamMeta{.number = number,
                            .name = request.id,
                            .pipeline = pipeline.name,
                            .rule = millrace::to_json(pipeline.chunk),
                            .frames = pipeline.frames,
                            .batches = batches_of(pipeline),
                            .options = request.options,
                            .client = to_json(format, pipeline.frames.features),
                            .opened_wall = wall_clock().count(),
                            .opened_steady = to_wire(now),
                            .resumable = resumable});
  return std::make_unique<StreamRecording>(pages_, std::move(meta), pipeline.record->answers);
}

}  // namespace millrace
