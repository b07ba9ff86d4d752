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
      resumables_(thread.shared.resume_window, thread.index, thread.shared.detached),
      next_id_(thread.shared.first_stream + thread.index) {
  for (const auto& pipeline : pipelines)
    pipelines_.push_back(std::make_unique<PipelineStreams>(
        *pipeline, PipelineStreams::Thread{table_, thread.shared.names, thread.log}));
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

RequestError ThreadAdmission::no_pipeline(std::string_view asked) const {
  constexpr std::size_t most = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(pipelines_.size(), most); ++i)
    names += (i > 0 ? ", " : "") + pipelines_[i]->pipeline().name();
  if (pipelines_.size() > most) names += ", ...";
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

Result<StreamHandle, RequestError> ThreadAdmission::open(StreamRequest request,
                                                         ClientOutput& output) {
  auto opened = request.resumption ? resume(request, output) : decide(request, output, {});
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

std::optional<RequestError> ThreadAdmission::refusal(const StreamRequest& request) {
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
  return found.has_places() ? std::nullopt : lacks_place(checked->streams);
}

Result<ThreadAdmission::Checked, RequestError> ThreadAdmission::check(
    const StreamRequest& request) {
  if (refuses_all_) return busy(503, "", "the service is stopping", Refusal::draining);
  PipelineStreams* streams = find(request.pipeline);
  if (!streams) return no_pipeline(request.pipeline);
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

Result<StreamHandle, RequestError> ThreadAdmission::decide(StreamRequest& request,
                                                           ClientOutput& output,
                                                           const Found& anew) {
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
  return admit(checked->streams, std::move(request), checked->request, output, opening);
}

NameBook::Holder ThreadAdmission::holder_of(
    const std::optional<ResumableStream::Settings>& opening) const {
  NameBook::Holder holder{.thread = thread_.index};
  if (opening) holder.key = opening->key;
  return holder;
}

StreamHandle ThreadAdmission::admit(
    PipelineStreams& streams, StreamRequest request, const CheckedRequest& checked,
    ClientOutput& output, const std::optional<ResumableStream::Settings>& opening) noexcept {
  Pipeline& pipeline = streams.pipeline();
  const PipelineOptions& options = pipeline.options();
  const StreamId id{next_id_ += thread_.threads};
  if (request.id.empty()) {
    request.id =
        thread_.shared.name_prefix + std::to_string(number(id) - thread_.shared.first_stream);
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
    output.ready({.stream = request.id,
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
                          .options = std::move(request.options),
                          .opened = now};
  const ResumeSettings places{.longest_segment = frames_in(computed_again, options.frames),
                              .start = from.point};
  Stream& stream = table_.add(std::make_unique<Stream>(
      std::move(settings), streams.links(), resumable ? *resumable : output,
      Share::taken_before(thread_.shared.connections, 1), std::move(tap),
      resumable ? &places : nullptr));
  if (!resumable) return StreamHandle(&stream);
  resumable->take(stream);
  const std::optional<bool> kept = request.resumption ? std::optional(false) : std::nullopt;
  return connect(resumables_.add(std::move(resumable)), output, opening->epoch, from.n, kept, now);
}

}  // namespace millrace
