// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/pipeline_streams.h"

#include "streams/frames/frame_buffer.h"

namespace millrace {

namespace {

// Unused blocks are kept for later streams, up to this many bytes.
constexpr std::size_t spare_block_bytes = std::size_t{4} << 20;

std::size_t block_bytes(const PipelineOptions& options) {
  return FrameBuffer::block_bytes(options.frames.bytes(), options.chunk.width());
}

// True if the service or its workers could not serve the stream, whatever its client did.
constexpr bool is_service_error(ErrorCode code) {
  return code == ErrorCode::no_worker || code == ErrorCode::no_room ||
         code == ErrorCode::worker_failed || code == ErrorCode::internal;
}

}  // namespace

PipelineStreams::PipelineStreams(Pipeline& pipeline, const Thread& thread)
    : pipeline_(pipeline),
      thread_(thread),
      blocks_(block_bytes(pipeline.options()), spare_block_bytes / block_bytes(pipeline.options()),
              stats_.buffer) {}

void PipelineStreams::client_lost(std::string_view stream, Time now) {
  thread_.log.info(
      "stream aborted",
      {{"pipeline", pipeline_.name()}, {"stream", stream}, {"why", "client disconnected"}}, now);
}

void PipelineStreams::detached(std::string_view stream, Time now) {
  thread_.log.info("stream waits for its client",
                   {{"pipeline", pipeline_.name()}, {"stream", stream}}, now);
}

void PipelineStreams::warned(std::string_view stream, std::string_view message) {
  thread_.log.warning("stream values out of range",
                      {{"pipeline", pipeline_.name()}, {"stream", stream}, {"why", message}});
}

void PipelineStreams::failed(std::string_view stream, ErrorCode code, std::string_view message) {
  const auto write = is_service_error(code) ? &Log::warning : &Log::info;
  (thread_.log.*write)("stream ended",
                       {{"pipeline", pipeline_.name()},
                        {"stream", stream},
                        {"code", name_of(code)},
                        {"why", message}},
                       Clock::now());
}

void PipelineStreams::released(Stream& stream) {
  thread_.names.give_back(stream.settings().name);
  thread_.permits.remove(stream.settings().id);
  thread_.table.reap(stream);
}

}  // namespace millrace
