// SPDX-License-Identifier: Apache-2.0
// Streams that outlive their connections.
#include <cmath>
#include <functional>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "service/config/memory_bounds.h"
#include "service/log/wall_clock.h"
#include "service/pipelines/thread_admission.h"
#include "streams/intake.h"
#include "transport/websocket/stream_target.h"

namespace millrace {
namespace {

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

// Why the request cannot continue the stream.
std::optional<RequestError> misfit(const ResumableStream& stream, const StreamRequest& request) {
  if (parameters_of(request) != stream.parameters())
    return refused(400, "", "the parameters must be those with which the stream was opened");
  if (const auto parameter = stream.misfit(*request.resumption); !parameter.empty())
    return refused(400, parameter, "does not fit the stream");
  return std::nullopt;
}

ResumeSubject subject_of(std::string_view stream, std::string_view pipeline) {
  return {.name = id_in(stream), .pipeline = pipeline, .tenant = tenant_in(stream)};
}

std::uint64_t kept_frames(const PipelineOptions& options, const ClientFormat& format) {
  const double seconds = kept_seconds(options);
  const bool is_opus = format.format == SampleFormat::opus;
  return static_cast<std::uint64_t>(
      std::ceil(seconds * (is_opus ? 1 / shortest_packet : format.rate)));
}

}  // namespace

std::optional<std::uint32_t> ThreadAdmission::thread_of(const StreamRequest& request,
                                                        const ClientIdentity& client) const {
  if (!request.resumption) return std::nullopt;
  const auto grant = thread_.shared.gate.access.grant(client.credential);
  if (!grant) return std::nullopt;
  const auto holder = thread_.shared.names.find(grant->tenant->prefix() + request.id);
  if (!holder || holder->thread == thread_.index) return std::nullopt;
  return holder->thread;
}

std::optional<RequestError> ThreadAdmission::lacks_place(PipelineStreams& streams) {
  const DetachedList& waiting = thread_.shared.detached;
  const Pipeline& pipeline = streams.pipeline();
  if (streams.pipeline().hub().stream_budget().is_full())
    return waiting.has_any(pipeline.name()) ? std::nullopt : std::optional(no_slot());
  const bool full = thread_.shared.connections.is_full() && !waiting.has_any();
  return full ? std::optional(too_many_connections()) : std::nullopt;
}

// One stream that waits gives both.
std::optional<RequestError> ThreadAdmission::take_places(PipelineStreams& streams, bool anyway) {
  Budget& slots = streams.pipeline().hub().stream_budget();
  Budget& connections = thread_.shared.connections;
  DetachedList& waiting = thread_.shared.detached;
  const bool slot = slots.try_take(1), connection = connections.try_take(1);
  std::optional<DetachedList::Entry> oldest;
  if (!anyway && !(slot && connection)) {
    oldest = slot ? waiting.take_oldest() : waiting.take_oldest(streams.pipeline().name());
    if (!oldest) {
      if (slot) slots.give_back(1);
      if (connection) connections.give_back(1);
      return slot ? too_many_connections() : no_slot();
    }
  }
  // Its places are free soon: until then the new stream waits for the slot in the lanes.
  if (!slot) slots.take(1);
  if (!connection) connections.take(1);
  if (oldest) thread_.shared.end_waiting(*oldest);
  return std::nullopt;
}

Result<ResumeToken, ResumeFault> ThreadAdmission::verify_at(const StreamRequest& request,
                                                            std::string_view pipeline,
                                                            Duration now) const {
  return thread_.shared.resume_keys.get()->verify(request.resumption->token,
                                                  subject_of(request.id, pipeline), now);
}

Result<ResumeToken, RequestError> ThreadAdmission::verify(const StreamRequest& request,
                                                          std::string_view pipeline) const {
  const auto token = verify_at(request, pipeline, wall_clock());
  if (token) return *token;
  if (token.error() == ResumeFault::too_old)  // a connection over ZeroMQ may be as old
    if (const auto old = verify_at(request, pipeline, {}); old && resumables_.find(old->stream))
      return *old;
  return refused(token.error());
}

Result<ThreadAdmission::Found, RequestError> ThreadAdmission::find_stream(
    const StreamRequest& request) const {
  const auto token = verify(request, find(request.pipeline)->pipeline().name());
  if (!token) return token.error();
  ResumableStream* stream = resumables_.find(token->stream);
  if (!stream) return Found{*token};
  const auto how = stream->check(token->epoch, token->opening);
  if (how == ResumableStream::Epoch::newer) return Found{.token = *token, .older = stream};
  if (how == ResumableStream::Epoch::used)
    return refused(409, "resume", "the token was used before: show the newest one");
  if (auto refused = misfit(*stream, request)) return std::move(*refused);
  return Found{.token = *token, .stream = stream};
}

Result<StreamHandle, RequestError> ThreadAdmission::resume(StreamRequest& request,
                                                           ClientOutput& output, const Opener& by) {
  const auto found = find_stream(request);
  if (!found) {
    if (found.error().status == 403)
      thread_.log.warning("resume token refused",
                          {{"stream", request.id}, {"why", "it was signed for another stream"}});
    return found.error();
  }
  if (!found->stream || !resumables_.claim(found->token.stream))
    return open_anew({.token = found->token, .older = found->older}, request, output, by);
  return connect(*found->stream, output, found->token.epoch, request.resumption->n,
                 !found->stream->is_new(), Clock::now(), by);
}

std::optional<RequestError> ThreadAdmission::cannot_begin(const StreamRequest& request) {
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
  return std::nullopt;
}

Result<StreamHandle, RequestError> ThreadAdmission::open_anew(const Found& found,
                                                              StreamRequest& request,
                                                              ClientOutput& output,
                                                              const Opener& by) {
  if (auto refused = cannot_begin(request)) return std::move(*refused);
  return decide(request, output, found, by);
}

std::unique_ptr<ResumableStream> ThreadAdmission::make_resumable(ResumableStream::Settings opening,
                                                                 const StreamRequest& request,
                                                                 const PipelineOptions& options,
                                                                 const ClientFormat& format) {
  const Resumption from = request.resumption.value_or(Resumption());
  opening.parameters = parameters_of(request);
  opening.n = from.n;
  opening.results = from.results;
  opening.flushed = from.flushed;
  opening.buffer = thread_.shared.resume_buffer;
  opening.keep = kept_frames(options, format);
  opening.held = static_cast<std::size_t>(kept_seconds(options) * options.frames.rate *
                                          static_cast<double>(options.frames.bytes()));
  return std::make_unique<ResumableStream>(opening, resumables_);
}

StreamHandle ThreadAdmission::connect(ResumableStream& stream, ClientOutput& output,
                                      std::uint32_t epoch, std::uint64_t n,
                                      std::optional<bool> kept, Time now, const Opener& by) {
  const StreamSettings& settings = stream.stream().settings();
  permits_.set(settings.id, by.credential, by.grant);
  const std::string peer = output.peer();
  const Log::Fields fields = {
      {"pipeline", settings.pipeline}, {"stream", settings.name}, {"peer", peer}};
  // If its client has received nothing, a stream that begins anew has lost nothing.
  const bool lost = kept == false && (n > 0 || stream.stream().next_row() > 0);
  if (kept == true) thread_.log.info("stream resumed", fields, now);
  if (lost) thread_.log.info("stream opened anew", fields, now);
  if (kept == true || lost) stream.stream().count_resumed(!lost);
  const std::string token = thread_.shared.resume_keys.get()->sign(
      {.epoch = epoch + 1, .opening = stream.opening(), .stream = stream.key()},
      subject_of(settings.name, settings.pipeline), wall_clock());
  return stream.attach(output, epoch, n, token, kept, now);
}

}  // namespace millrace
