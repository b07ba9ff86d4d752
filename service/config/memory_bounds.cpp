// SPDX-License-Identifier: Apache-2.0
#include "service/config/memory_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message_room.h"
#include "chunker/ready_row.h"
#include "gpu/host/slab_layout.h"
#include "gpu/host/slab_ring.h"
#include "input/conversion_bytes.h"
#include "input/voice_detector.h"
#include "schemas/stream_request.h"
#include "schemas/worker_protocol.h"
#include "service/config/descriptors.h"
#include "streams/frames/frame_buffer.h"
#include "streams/resume/resumable_stream.h"
#include "streams/stream_settings.h"
#include "streams/waiting_events.h"
#include "transport/net/limits.h"
#include "transport/sessions/zeromq/zeromq_server.h"
#include "transport/websocket/read_ahead.h"
#include "transport/zeromq/zmtp_output.h"
#include "workers/hub/server.h"

namespace millrace {

namespace {

// Saturating arithmetic: a configuration that asks for more than 64 bits can express is refused.
std::size_t product(std::initializer_list<std::size_t> factors) {
  std::size_t all = 1;
  for (const std::size_t factor : factors)
    if (__builtin_mul_overflow(all, factor, &all)) return std::numeric_limits<std::size_t>::max();
  return all;
}
std::size_t sum(std::size_t a, std::size_t b) {
  std::size_t both = 0;
  return __builtin_add_overflow(a, b, &both) ? std::numeric_limits<std::size_t>::max() : both;
}

// The element type of slabs: that of the frames on a device, `dtype` on the host.
Element larger(Element frames, Element dtype) {
  return size_of(frames) > size_of(dtype) ? frames : dtype;
}

std::size_t slab_bytes(const PipelineOptions& pipeline) {
  const SlabShape shape{.rows = pipeline.batch.rows,
                        .marks = pipeline.batch.slots,
                        .width = pipeline.batch.width_buckets.back(),
                        .values = pipeline.frames.values,
                        .element = larger(pipeline.frames.element, pipeline.dtype)};
  // Far below 2^64, so that the addition in layout_of cannot overflow.
  constexpr std::size_t most = std::size_t{1} << 60;
  if (product({shape.rows, shape.width, shape.values, size_of(shape.element)}) > most) return most;
  return SlabRing::slab_bytes_for(layout_of(shape).bytes);
}

// The most memory that a message of `message` bytes takes as frames of the pipeline. Features have
// at least two bytes a value. Audio is longest at one byte a value and the lowest rate, or as a
// packet of Opus. The resampler may hold back frames of earlier messages.
std::size_t converted_bytes(const FrameType& frames, std::size_t message) {
  const std::size_t element = size_of(frames.element);
  if (frames.features) return message / 2 * element;
  constexpr double lowest_rate = 8000, longest_packet = 0.120, longest_delay = 0.040;
  const double bytes =
      static_cast<double>(message * element) * std::max(1.0, frames.rate / lowest_rate);
  const double frame_rate = static_cast<double>(frames.bytes()) * frames.rate;
  return static_cast<std::size_t>(
      std::ceil(std::max(bytes, longest_packet * frame_rate) + longest_delay * frame_rate));
}

// The most memory of one stream's converter and voice detector.
std::size_t input_bytes(const PipelineOptions& pipeline) {
  // A client may ask for one (SegmentEnds).
  const bool has_detector =
      !pipeline.frames.features && VoiceDetector::has_rate(pipeline.frames.rate);
  return most_conversion_bytes(pipeline.frames) +
         (has_detector ? VoiceDetector::bytes(pipeline.frames.rate) : 0);
}

// The most frame memory of one stream, in whole blocks: the frames that it may hold, also while its
// client must acknowledge messages (ResumableStream::Settings::held), the converted
// message that exceeded this limit, the next incoming message, and the bytes read after it.
std::size_t frame_bytes(const PipelineOptions& pipeline, std::size_t message) {
  const std::size_t frame = pipeline.frames.bytes();
  const std::size_t block = FrameBuffer::block_bytes(frame, pipeline.chunk.width());
  const std::size_t buffers = pipeline.shed_after ? 2 : 1;
  const auto kept = static_cast<std::size_t>(kept_seconds(pipeline) * pipeline.frames.rate);
  const std::size_t held =
      product({std::max(pipeline.stream_frames + pipeline.pause_frames, kept), frame});
  const std::size_t most = message + converted_bytes(pipeline.frames, message) +
                           (2 * buffers + 1) * block + ReadBuffer::size;
  return sum(held, most);
}

// Memory of an open stream without frames, rows and results, its connection included.
// tests/system/many_clients_test.py measures it.
constexpr std::size_t stream_bytes = std::size_t{24} << 10;

// The recorder's memory for an open stream: the content of its channel, most of which are the
// client's options, and its place in the recording file.
constexpr std::size_t recorded_stream_bytes = std::size_t{8} << 10;

// Memory of a connection before its upgrade: its header (at most twice: as read and as stored) and
// the frames of its coroutines. tests/system/many_clients_test.py measures it.
constexpr std::size_t upgrading_bytes = std::size_t{32} << 10;

// The longest message of a client of another vendor's protocol, and its audio, of which the stream
// has taken nothing yet.
constexpr std::size_t vendor_message_bytes = 2 * longest_vendor_message;

// Memory of one stream's ready rows and of the events that wait to become rows.
constexpr std::size_t row_bytes =
    max_ready_rows * sizeof(ReadyRow) + WaitingEvents::overrun * sizeof(WaitingEvents::Waiting);

// The messages of one stream's client to the worker, at most in three places: in their rows, in the
// batches of these rows, and in the bytes that are sent to the worker. And the options that the
// client has changed: the first ones and the newest in the stream, and those in its lane.
std::size_t post_bytes(const PipelineOptions& pipeline) {
  return product({3, kept_posts, pipeline.longest_post}) + 3 * longest_options;
}

// The recorder itself: the queue, the events of its pages, what one write has, and the channels of
// the recording file for its summary. Buffers that grow may take three times their content.
std::size_t recorder_bytes(const RecordingOptions& recording) {
  constexpr std::size_t write = std::size_t{16} << 20;
  constexpr std::size_t most_channels = 32'000, longest_channel = 5 << 10;
  const std::size_t summary = std::min(recording.file_size, most_channels * longest_channel);
  return sum(product({2, recording.queue}), sum(write, product({3, summary})));
}

// The bounds of `streams` streams, without slabs.
MemoryBounds bounds_of_streams(const PipelineOptions& pipeline, const LimitOptions& limits,
                               std::size_t streams) {
  return {.frames = product({streams, frame_bytes(pipeline, limits.message)}),
          .rows = product({streams, sum(row_bytes, post_bytes(pipeline))}),
          .results = product({streams, limits.send_buffer + stream_room + limits.resume_buffer +
                                           ResumableStream::excess}),
          .streams = product({streams, stream_bytes + input_bytes(pipeline)}),
          .recording = pipeline.record ? product({streams, recorded_stream_bytes}) : 0};
}

}  // namespace

std::size_t MemoryBounds::all() const {
  std::size_t all = 0;
  for (const std::size_t part : {frames, rows, slabs, results, streams, recording, sockets})
    all = sum(all, part);
  return all;
}

// The place from which a stream can be continued moves before its client waits: 20 s are more than
// a segment that is computed again.
double kept_seconds(const PipelineOptions& pipeline) {
  constexpr double segment = 20;
  return segment + (2 * pipeline.chunk.width() + pipeline.chunk.spec.step) / pipeline.frames.rate;
}

std::size_t bare_stream_bytes() { return row_bytes + stream_bytes; }

std::size_t unread_bytes(const LimitOptions& limits) {
  constexpr std::size_t one = worker_protocol::max_to_service + reserved_unread_bytes;
  return std::max(limits.slab_bytes, one);
}

MemoryBounds memory_bounds(const PipelineOptions& pipeline, const LimitOptions& limits) {
  MemoryBounds bounds = bounds_of_streams(pipeline, limits, pipeline.batch.slots);
  bounds.slabs = product({default_credits + 1, slab_bytes(pipeline)});
  return bounds;
}

MemoryBounds memory_bounds(const Options& options) {
  MemoryBounds most;
  for (const PipelineOptions& pipeline : options.pipelines) {
    const auto bounds = bounds_of_streams(pipeline, options.limits, options.limits.connections);
    most.frames = std::max(most.frames, bounds.frames);
    most.rows = std::max(most.rows, bounds.rows);
    most.results = std::max(most.results, bounds.results);
    most.streams = std::max(most.streams, bounds.streams);
    most.recording = std::max(most.recording, bounds.recording);
  }
  if (most.recording > 0) most.recording = sum(most.recording, recorder_bytes(options.recording));
  most.streams = sum(most.streams, upgrading_sockets * upgrading_bytes);
  most.slabs = options.limits.slab_bytes;
  if (options.listen.zeromq) {
    const std::size_t connections = options.limits.connections;
    most.frames = sum(most.frames, product({connections, options.limits.message + zeromq_envelope +
                                                             ZeromqRouter::read_at_once}));
    most.results = sum(most.results, product({connections, ZmtpOutput::full}));
  }
  if (!options.protocols.empty())
    most.streams = sum(most.streams, product({options.limits.connections, vendor_message_bytes}));
  const SocketLimits sockets{.receive_buffer = options.listen.receive_buffer};
  most.sockets =
      product({sum(options.limits.connections, upgrading_sockets), sockets.kernel_bytes()});
  if (options.listen.workers_remote)
    most.results = sum(most.results, unread_bytes(options.limits) +
                                         max_remote_connections * reserved_unread_bytes);
  return most;
}

}  // namespace millrace
