// SPDX-License-Identifier: Apache-2.0
// Streams that outlive their connections.
#include <cmath>
#include <functional>
#include <utility>

#include "schemas/json_text.h"
#include "service/log/wall_clock.h"
#include "service/pipelines/thread_admission.h"
#include "streams/intake.h"
#include "transport/websocket/stream_target.h"

namespace millrace {
namespace {

// A client keeps this time of frames, and the longest row: more than a segment that is computed
// again, so that the place from which the stream can be continued moves before the client waits.
constexpr double kept_seconds = 20;
constexpr double shortest_packet = 0.0025;  // seconds, of Opus

RequestError refused(unsigned status, std::string_view parameter, std::string message) {
  return {.status = status,
          .parameter = std::string(parameter),
          .message = std::move(message),
          .reason = Refusal::resume};
}

RequestError refused(ResumeFault fault) {
  switch (fault) {
    case ResumeFault::malformed: return refused(400, "resume", "the token is malformed");
    case ResumeFault::wrong_mac: return refused(403, "resume", "the token is not of this stream");
    case ResumeFault::unknown_key:
    case ResumeFault::too_old: break;
  }
  return refused(404, "resume", "the stream is not known here any more: open a new one");
}

// The same for all requests with the same parameters.
std::size_t parameters_of(StreamRequest request) {
  request.resumption.reset();
  request.id.clear();
  return std::hash<std::string>()(stream_target(request));
}

double kept_time(const PipelineOptions& options) {  // in seconds
  const Spec& spec = options.chunk.spec;
  return kept_seconds + (2 * options.chunk.width() + spec.step) / options.frames.rate;
}

// Why the request cannot continue the stream.
std::optional<RequestError> misfit(const ResumableStream& stream, const ResumeToken& token,
                                   const StreamRequest& request) {
  if (stream.check(token.epoch) == ResumableStream::Epoch::used)
    return refused(409, "resume", "the token was used before: show the newest one");
  if (parameters_of(request) != stream.parameters())
    return refused(400, "", "the parameters must be those with which the stream was opened");
  if (const auto parameter = stream.misfit(*request.resumption); !parameter.empty())
    return refused(400, parameter, "does not fit the stream");
  return std::nullopt;
}

std::uint64_t kept_frames(const PipelineOptions& options, const ClientFormat& format) {
  const double seconds = kept_time(options);
  const bool is_opus = format.format == SampleFormat::opus;
  return static_cast<std::uint64_t>(
      std::ceil(seconds * (is_opus ? 1 / shortest_packet : format.rate)));
}

}  // namespace

std::optional<std::uint32_t> ThreadAdmission::thread_of(const StreamRequest& request) const {
  if (!request.resumption) return std::nullopt;
  const auto holder = thread_.shared.names.find(request.id);
  if (!holder || holder->thread == thread_.index) return std::nullopt;
  return holder->thread;
}

bool ThreadAdmission::take_slot(PipelineStreams& streams) {
  Budget& slots = streams.pipeline().hub().stream_budget();
  if (slots.try_take(1)) return true;
  const auto oldest = thread_.shared.detached.take_oldest(streams.pipeline().name());
  if (!oldest) return false;
  // Its slot is free soon: until then the new stream waits for it in the lanes.
  slots.take(1);
  thread_.shared.end_waiting(*oldest);
  return true;
}

Result<ResumeToken, ResumeFault> ThreadAdmission::verify_at(const StreamRequest& request,
                                                            std::string_view pipeline,
                                                            Duration now) const {
  return thread_.shared.resume_keys.keys()->verify(
      request.resumption->token, {.name = request.id, .pipeline = pipeline, .tenant = {}}, now);
}

Result<ResumeToken, RequestError> ThreadAdmission::verify(const StreamRequest& request,
                                                          std::string_view pipeline) const {
  const auto token = verify_at(request, pipeline, wall_clock());
  if (token) return *token;
  if (token.error() == ResumeFault::too_old)  // a connection over ZeroMQ may be as old
    if (const auto old = verify_at(request, pipeline, {}); old && resumables_.find(old->stream))
      return *old;
  if (token.error() == ResumeFault::wrong_mac)
    thread_.log.warning("resume token refused",
                        {{"stream", request.id}, {"why", "it was signed for another stream"}});
  return refused(token.error());
}

Result<StreamHandle, RequestError> ThreadAdmission::resume(StreamRequest& request,
                                                           ClientOutput& output) {
  PipelineStreams* streams = find(request.pipeline);
  if (!streams) return no_pipeline(request.pipeline);
  const auto token = verify(request, streams->pipeline().name());
  if (!token) return token.error();
  ResumableStream* stream = resumables_.find(token->stream);
  if (stream && stream->check(token->epoch) == ResumableStream::Epoch::newer) {
    resumables_.remove(*stream);  // it has continued elsewhere
    stream = nullptr;
  }
  if (!stream) return open_anew(*token, request, output);
  if (auto refused = misfit(*stream, *token, request)) return std::move(*refused);
  if (!resumables_.claim(token->stream)) return open_anew(*token, request, output);
  return connect(*stream, output, token->epoch, request.resumption->n, true, Clock::now());
}

Result<StreamHandle, RequestError> ThreadAdmission::open_anew(const ResumeToken& token,
                                                              StreamRequest& request,
                                                              ClientOutput& output) {
  const auto checked = check(request);
  if (!checked) return checked.error();
  const Resumption& from = *request.resumption;
  const FrameType& type = checked->streams.pipeline().options().frames;
  if (!Intake::can_begin(checked->request.format, type, from.point))
    return refused(400, "begin", "does not lie in the frame from");
  if (!from.set.empty()) {
    const std::string merged = merged_members(request.options, {from.set});
    if (merged.empty() || merged.size() > longest_options)
      return refused(400, "set", "the options are too long");
  }
  return decide(request, output, token);
}

std::unique_ptr<ResumableStream> ThreadAdmission::make_resumable(const StreamRequest& request,
                                                                 const PipelineOptions& options,
                                                                 const ClientFormat& format,
                                                                 const StreamKey& key,
                                                                 std::uint32_t epoch) {
  const Resumption from = request.resumption.value_or(Resumption());
  return std::make_unique<ResumableStream>(
      ResumableStream::Settings{
          .key = key,
          .parameters = parameters_of(request),
          .epoch = epoch,
          .n = from.n,
          .results = from.results,
          .flushed = from.flushed,
          .buffer = thread_.shared.resume_buffer,
          .keep = kept_frames(options, format),
          .held = static_cast<std::size_t>(kept_time(options) * options.frames.rate *
                                           static_cast<double>(options.frames.bytes()))},
      resumables_);
}

StreamHandle ThreadAdmission::connect(ResumableStream& stream, ClientOutput& output,
                                      std::uint32_t epoch, std::uint64_t n,
                                      std::optional<bool> kept, Time now) {
  const StreamSettings& settings = stream.stream().settings();
  const std::string peer = output.peer();
  const Log::Fields fields = {
      {"pipeline", settings.pipeline}, {"stream", settings.name}, {"peer", peer}};
  // If its client has received nothing, a stream that begins anew has lost nothing.
  const bool lost = kept == false && (n > 0 || stream.stream().next_row() > 0);
  if (kept == true) thread_.log.info("stream resumed", fields, now);
  if (lost) thread_.log.info("stream opened anew", fields, now);
  if (kept == true || lost) stream.stream().count_resumed(!lost);
  const std::string token = thread_.shared.resume_keys.keys()->sign(
      {.epoch = epoch + 1, .stream = stream.key()},
      {.name = settings.name, .pipeline = settings.pipeline, .tenant = {}}, wall_clock());
  return stream.attach(output, epoch, n, token, kept, now);
}

}  // namespace millrace
