// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/thread_admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/access/random_bytes.h"

namespace millrace {

namespace {

// Segments up to this length are computed again if their state is lost.
constexpr std::chrono::seconds computed_again{15};

std::uint64_t frames_in(std::chrono::seconds time, const FrameType& type) {
  return static_cast<std::uint64_t>(static_cast<double>(time.count()) * type.rate);
}

// Workers end their connection at invalid options, so no protocol can bring any.
bool has_valid_options(const StreamRequest& request) {
  return request.options.empty() ||
         (request.options.size() <= longest_options && is_json_object(request.options));
}

}  // namespace

ThreadAdmission::ThreadAdmission(std::span<const std::unique_ptr<Pipeline>> pipelines,
                                 const Thread& thread)
    : thread_(thread),
      permits_(table_, thread.shared.gate.access),
      resumables_(thread.shared.resume_window, thread.index, thread.shared.detached),
      next_id_(thread.shared.first_stream + thread.index) {
  for (const auto& pipeline : pipelines)
    pipelines_.push_back(std::make_unique<PipelineStreams>(
        *pipeline, PipelineStreams::Thread{table_, thread.shared.names, permits_, thread.log}));
}

void ThreadAdmission::allow(std::uint64_t more) {
  for (auto& pipeline : pipelines_) pipeline->allow(more / pipelines_.size());
}

PipelineStreams* ThreadAdmission::find(std::string_view pipeline) const {
  for (const auto& streams : pipelines_)
    if (streams->pipeline().name() == pipeline) return streams.get();
  // The name that clients send if they give none.
  if (pipeline == StreamRequest().pipeline && pipelines_.size() == 1)
    return pipelines_.front().get();
  return nullptr;
}

RequestError ThreadAdmission::no_pipeline(std::string_view asked, const Grant& grant) const {
  constexpr std::size_t most = 8;
  std::string names;
  std::size_t listed = 0;
  for (const auto& streams : pipelines_) {
    if (!grant.allows(streams->pipeline().name())) continue;
    if (listed == most) names += ", ...";
    if (listed++ >= most) break;
    names += (listed > 1 ? ", " : "") + streams->pipeline().name();
  }
  return {.status = 404,
          .parameter = "pipeline",
          .message = "there is no pipeline " + std::string(asked) + "; there are: " + names};
}

bool ThreadAdmission::memory_short() const {
  return thread_.shared.gate.memory_short.load(std::memory_order_relaxed) ||
         thread_.shared.connections.taken() >=
             thread_.shared.streams.load(std::memory_order_relaxed);
}

RequestError ThreadAdmission::busy(unsigned status, std::string parameter, std::string message,
                                   Refusal reason) {
  return {.status = status,
          .parameter = std::move(parameter),
          .message = std::move(message),
          .retry_after = retry_times_.after_refusal(memory_short()),
          .reason = reason};
}

Result<Grant, RequestError> ThreadAdmission::identify(StreamRequest& request,
                                                      const ClientIdentity& client) const {
  auto grant = thread_.shared.gate.access.grant(client.credential);
  if (!grant) return unauthenticated(grant.error());
  if (!request.id.empty()) request.id.insert(0, grant->tenant->prefix());
  PipelineStreams* const streams = find(request.pipeline);
  if (!streams) return no_pipeline(request.pipeline, *grant);
  if (!grant->allows(streams->pipeline().name())) return forbidden(streams->pipeline().name());
  return *std::move(grant);
}

Result<StreamHandle, RequestError> ThreadAdmission::open(StreamRequest request,
                                                         const ClientIdentity& client,
                                                         ClientOutput& output) {
  const auto open_granted = [&](const Grant& grant) {
    const Opener by{client.credential, grant};
    return request.resumption ? resume(request, output, by) : decide(request, output, {}, by);
  };
  const auto grant = identify(request, client);
  auto opened = grant ? open_granted(*grant) : grant.error();
  if (opened) return opened;
  RequestError why = opened.error();
  const bool full = why.status == 503 && why.reason != Refusal::draining;
  const auto write = full ? &Log::warning : &Log::info;
  (thread_.log.*write)("stream refused",
                       {{"pipeline", request.pipeline},
                        {"stream", request.id},
                        {"parameter", why.parameter},
                        {"why", why.message},
                        {"peer", output.peer()}},
                       Clock::now());
  why.logged = true;
  return why;
}

std::optional<RequestError> ThreadAdmission::refusal(const StreamRequest& asked,
                                                     const ClientIdentity& client) {
  StreamRequest request = asked;
  const auto grant = identify(request, client);
  if (!grant) return grant.error();
  Found found;
  if (request.resumption) {
    const auto looked_up = find_stream(request);
    if (!looked_up) return looked_up.error();
    found = *looked_up;
    if (found.stream) return std::nullopt;
    if (auto refused = cannot_begin(request)) return refused;
  }
  const auto checked = check(request);
  if (!checked) return checked.error();
  const auto holder = thread_.shared.names.find(request.id);
  if (holder && !(found.older && holder->key == found.token.stream)) return name_in_use();
  if (found.has_places()) return std::nullopt;
  if (grant->tenant->streams.is_full()) return too_many_streams(*grant->tenant);
  return lacks_place(checked->streams);
}

Result<ThreadAdmission::Checked, RequestError> ThreadAdmission::check(
    const StreamRequest& request) {
  if (refuses_all_) return busy(503, "", "the service is stopping", Refusal::draining);
  PipelineStreams* streams = find(request.pipeline);
  if (!has_valid_options(request))
    return RequestError{.parameter = "options",
                        .message = "must be a JSON object of at most 4096 bytes"};
  auto checked = check_request(request, streams->pipeline().options());
  if (!checked) return checked.error();
  if (request.explain && !thread_.shared.explain)
    return RequestError{.parameter = "explain",
                        .message = "not allowed: [listen] explain is false"};

  if (memory_short()) return busy(503, "", "the service is short of memory", Refusal::overload);
  return Checked{*streams, std::move(*checked)};
}

RequestError ThreadAdmission::too_many_connections() {
  return busy(503, "",
              "the service has reached its limit of " +
                  std::to_string(thread_.shared.connections.limit()) + " connections",
              Refusal::limit_global);
}

RequestError ThreadAdmission::name_in_use() {
  return busy(409, "id", "another open stream has this name", Refusal::parameter);
}

RequestError ThreadAdmission::no_slot() {
  return busy(503, "", "the pipeline has no free slot for another stream", Refusal::no_room);
}

RequestError ThreadAdmission::too_many_streams(const Tenant& tenant) {
  return busy(429, "",
              "the tenant has its limit of " + std::to_string(tenant.streams.limit()) + " streams",
              Refusal::limit_tenant);
}

std::optional<RequestError> ThreadAdmission::too_many_opens(Tenant& tenant) {
  const Time now = Clock::now();
  if (tenant.opens.try_take(now)) return std::nullopt;
  return RequestError{
      .status = 429,
      .message = "the tenant opens streams too fast",
      .retry_after = std::max(std::chrono::seconds(1),
                              std::chrono::ceil<std::chrono::seconds>(tenant.opens.wait(now))),
      .reason = Refusal::limit_tenant};
}

Result<StreamHandle, RequestError> ThreadAdmission::decide(StreamRequest& request,
                                                           ClientOutput& output, const Found& anew,
                                                           const Opener& by) {
  Tenant& tenant = by.tenant();
  if (auto refused = too_many_opens(tenant)) return std::move(*refused);
  const auto checked = check(request);
  if (!checked) return checked.error();
  std::optional<ResumableStream::Settings> opening;
  if (request.resume)
    opening = {.key = request.resumption ? anew.token.stream : new_stream_key(),
               .epoch = anew.token.epoch,
               .opening = new_opening(),
               .opened_by = anew.token.opening};
  if (anew.older && !anew.has_places())
    if (auto refused = lacks_place(checked->streams)) return std::move(*refused);
  Share share(tenant.streams, 1);
  if (!share && !anew.has_places()) return too_many_streams(tenant);
  if (!share) {
    tenant.streams.take(1);
    share = Share::taken_before(tenant.streams, 1);
  }
  // The places of the older copy are free soon, if no other stream has taken them: until then the
  // new stream exceeds the limits.
  const bool has_older = anew.older && resumables_.claim(anew.token.stream);
  const bool has_places = has_older && anew.has_places();
  if (has_older) resumables_.remove(*anew.older);
  if (!request.id.empty() && !thread_.shared.names.reserve(request.id, holder_of(opening)))
    return name_in_use();
  if (auto refused = take_places(checked->streams, has_places)) {
    if (!request.id.empty()) thread_.shared.names.give_back(request.id);
    return std::move(*refused);
  }
  return admit(*checked, std::move(request), output, opening, by, std::move(share));
}

NameBook::Holder ThreadAdmission::holder_of(
    const std::optional<ResumableStream::Settings>& opening) const {
  NameBook::Holder holder{.thread = thread_.index};
  if (opening) holder.key = opening->key;
  return holder;
}

StreamHandle ThreadAdmission::admit(const Checked& accepted, StreamRequest request,
                                    ClientOutput& output,
                                    const std::optional<ResumableStream::Settings>& opening,
                                    const Opener& by, Share share) noexcept {
  const CheckedRequest& checked = accepted.request;
  Pipeline& pipeline = accepted.streams.pipeline();
  const PipelineOptions& options = pipeline.options();
  const StreamId id{next_id_ += thread_.threads};
  if (request.id.empty()) {
    request.id = by.tenant().prefix() + thread_.shared.name_prefix +
                 std::to_string(number(id) - thread_.shared.first_stream);
    // A client has this name only if it guessed it; then any other name will do.
    while (!thread_.shared.names.reserve(request.id, holder_of(opening))) request.id += "x";
  }
  std::unique_ptr<ResumableStream> resumable;
  if (opening) resumable = make_resumable(*opening, request, options, checked.format);
  const Resumption from = request.resumption.value_or(Resumption());
  if (!from.set.empty()) request.options = merged_members(request.options, {from.set});
  const Time now = Clock::now();
  std::unique_ptr<StreamTap> tap;
  if (thread_.recording) {
    std::optional<recording::ResumableKey> key;
    if (opening) key = {.stream = opening->key, .epoch = opening->epoch};
    tap = thread_.recording->tap(request, options, checked.format, now, key);
  }
  pipeline.hub().open({id, request.id, request.options, &thread_.returns});
  if (!resumable)
    output.ready({.stream = id_in(request.id),
                  .pipeline = pipeline.name(),
                  .frame_bytes = size_of(checked.format.format) * checked.format.values});
  StreamSettings settings{.id = id,
                          .name = std::move(request.id),
                          .pipeline = pipeline.name(),
                          .type = options.frames,
                          .format = checked.format,
                          .chunk = options.chunk,
                          .requested_size = checked.size,
                          .endpoint = checked.endpoint,
                          .max_wait = options.batch.max_wait,
                          .frames_limit = options.stream_frames,
                          .pause_frames = options.pause_frames,
                          .longest_post = options.longest_post,
                          .shed_after = options.shed_after,
                          .explain = request.explain,
                          .signal = &by.tenant().signal,
                          .options = std::move(request.options),
                          .opened = now};
  const ResumeSettings places{.longest_segment = frames_in(computed_again, options.frames),
                              .start = from.point};
  Stream& stream = table_.add(std::make_unique<Stream>(
      std::move(settings), accepted.streams.links(), resumable ? *resumable : output,
      Share::taken_before(thread_.shared.connections, 1), std::move(tap),
      resumable ? &places : nullptr, std::move(share)));
  if (!resumable) {
    permits_.set(id, by.credential, by.grant);
    return StreamHandle(&stream);
  }
  resumable->take(stream);
  const std::optional<bool> kept = request.resumption ? std::optional(false) : std::nullopt;
  return connect(resumables_.add(std::move(resumable)), output, opening->epoch, from.n, kept, now,
                 by);
}

}  // namespace millrace
