// SPDX-License-Identifier: Apache-2.0
#include "service/stream_door.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "chunker/lengths.h"
#include "input/sample_format.h"

namespace millrace {

namespace {

// Blocks that a pipeline's streams leave behind on a thread and that are kept for the next ones.
constexpr std::size_t spare_block_bytes = std::size_t{4} << 20;

// The client's messages to its stream; the stream may live on when the connection is gone.
class LiveSink final : public StreamSink {
 public:
  LiveSink(LiveStream& live, StreamTable& table, Admission& admission)
      : live_(live), stream_(live.stream()), table_(table), admission_(admission) {}

  ~LiveSink() override {
    live_.lost(Clock::now());  // nothing where its end was told
    live_.disconnect();
    admission_.names.give_back(live_.name());
    table_.reap(live_.id());
  }

  void frames(Bytes bytes, Time arrived) override { stream_.frames(bytes, arrived); }
  void flush(std::optional<std::uint64_t> mark, Time arrived) override {
    stream_.flush(mark, arrived);
  }
  void reset(Time arrived) override { stream_.reset(arrived); }
  void gap(std::uint64_t client_frames, Time arrived) override {
    stream_.gap(client_frames, arrived);
  }
  void end(Time arrived) override { stream_.end(arrived); }
  void refused(ErrorCode code, std::string_view message, Time now) override {
    stream_.fail(code, message, now);
  }
  void retire(Time now) override { live_.drain(now); }
  void lost(bool clean, Time now) override { clean ? stream_.left(now) : live_.lost(now); }
  void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
              Time now) override {
    stream_.refuse(code, message, client_frames, now);
  }
  bool paused() const override { return stream_.paused(); }
  std::uint64_t room() const override { return stream_.room(); }
  bool overrun() const override { return stream_.overrun(); }
  void tick(Time now) override { stream_.tick(now); }
  void written(std::size_t results, Time now) override { stream_.written(results, now); }

 private:
  LiveStream& live_;
  Stream& stream_;
  StreamTable& table_;
  Admission& admission_;
};

RequestError refusal(unsigned status, std::string parameter, std::string message) {
  return {.status = status, .parameter = std::move(parameter), .message = std::move(message)};
}

// What of the request the pipeline does not take.
std::optional<RequestError> mismatch(const StreamRequest& request, const FrameType& frames) {
  if (request.rate && *request.rate != frames.rate)
    return refusal(415, "rate", "the pipeline takes " + readable(frames.rate));
  const auto& values = frames.features ? request.dim : request.channels;
  const auto& other = frames.features ? request.channels : request.dim;
  const char* name = frames.features ? "dim" : "channels";
  if (other)
    return refusal(415, frames.features ? "channels" : "dim",
                   frames.features ? "the pipeline takes features" : "the pipeline takes audio");
  if (values && *values != frames.values)
    return refusal(415, name, "the pipeline takes " + std::to_string(frames.values));
  if (request.channel) return refusal(400, "channel", "channels cannot be picked");
  if (request.chunk) return refusal(400, "chunk", "the pipeline has one chunk rule");
  return std::nullopt;
}

}  // namespace

StreamDoor::PipelinePlace::PipelinePlace(Pipeline& of)
    : pipeline(of),
      rows(of.hub()),
      blocks(FrameBuffer::block_bytes(of.options().frames.bytes(), of.options().chunk.spec.width()),
             spare_block_bytes / FrameBuffer::block_bytes(of.options().frames.bytes(),
                                                          of.options().chunk.spec.width()),
             stats.buffer) {}

StreamDoor::StreamDoor(std::span<const std::unique_ptr<Pipeline>> pipelines, Admission& admission,
                       ReturnBox& returns, Log& log, std::uint32_t thread, std::uint32_t threads)
    : admission_(admission), returns_(returns), log_(log), next_id_(thread), threads_(threads) {
  for (const auto& pipeline : pipelines)
    places_.push_back(std::make_unique<PipelinePlace>(*pipeline));
}

void StreamDoor::allow(std::uint64_t more) {
  for (auto& place : places_) place->blocks.allow(more / places_.size());
}

StreamDoor::PipelinePlace* StreamDoor::find(std::string_view pipeline) const {
  for (const auto& place : places_)
    if (place->pipeline.name() == pipeline) return place.get();
  return nullptr;
}

RequestError StreamDoor::no_pipeline(std::string_view asked) const {
  constexpr std::size_t most = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(places_.size(), most); ++i)
    names += (i > 0 ? ", " : "") + places_[i]->pipeline.name();
  if (places_.size() > most) names += ", ...";
  return refusal(404, "pipeline",
                 "there is no pipeline " + std::string(asked) + "; there are: " + names);
}

bool StreamDoor::memory_short() const {
  return admission_.gate.memory_short.load(std::memory_order_relaxed) ||
         admission_.connections.taken() >= admission_.streams.load(std::memory_order_relaxed);
}

RequestError StreamDoor::busy(unsigned status, std::string parameter, std::string message,
                              Refusal reason) {
  RequestError error = refusal(status, std::move(parameter), std::move(message));
  error.reason = reason;
  error.retry_after = retry_times_.of_refused(memory_short());
  return error;
}

Result<std::unique_ptr<StreamSink>, RequestError> StreamDoor::open(StreamRequest request,
                                                                   ClientOutbox& outbox) {
  auto opened = decide(request, outbox);
  if (opened) return opened;
  const RequestError& why = opened.error();
  const bool full = why.status == 503 && why.reason != Refusal::draining;
  const auto write = full ? &Log::warning : &Log::info;
  (log_.*write)("stream refused",
                {{"pipeline", request.pipeline},
                 {"stream", request.id},
                 {"parameter", why.parameter},
                 {"why", why.message},
                 {"peer", outbox.peer()}},
                Clock::now());
  return opened;
}

Result<std::unique_ptr<StreamSink>, RequestError> StreamDoor::decide(StreamRequest& request,
                                                                     ClientOutbox& outbox) {
  if (shut_) return busy(503, "", "the service is stopping", Refusal::draining);
  PipelinePlace* place = find(request.pipeline);
  if (!place) return no_pipeline(request.pipeline);
  const FrameType& frames = place->pipeline.options().frames;
  const auto format = request.format
                          ? parse_sample_format(*request.format, frames.features)
                          : Result<SampleFormat, FormatError>(default_format(frames.features));
  if (!format) return refusal(415, "format", format.error().message);
  if (auto error = mismatch(request, frames)) return *error;
  if (request.explain && !admission_.explain)
    return refusal(400, "explain", "not allowed by the service ([listen] explain)");

  if (memory_short()) return busy(503, "", "the service is short of memory", Refusal::overload);
  Share connection(admission_.connections, 1);
  if (!connection)
    return busy(503, "", "the service has as many connections as it may have",
                Refusal::limit_global);
  if (!request.id.empty() && !admission_.names.take(request.id))
    return busy(409, "id", "an open connection has this name", Refusal::parameter);
  if (!place->pipeline.hub().room().try_take(1)) {
    if (!request.id.empty()) admission_.names.give_back(request.id);
    return busy(503, "", "the pipeline has no room for another stream", Refusal::no_room);
  }
  return admit(*place, std::move(request), *format, std::move(connection), outbox);
}

std::unique_ptr<StreamSink> StreamDoor::admit(PipelinePlace& place, StreamRequest request,
                                              SampleFormat format, Share connection,
                                              ClientOutbox& outbox) noexcept {
  const StreamId id{next_id_ += threads_};
  std::string name = std::move(request.id);
  if (name.empty()) {
    name = admission_.made_up + std::to_string(number(id));
    // Only a client that guesses it can have it already; then any other will do.
    while (!admission_.names.take(name)) name += "x";
  }
  const PipelineOptions& options = place.pipeline.options();
  const StreamSettings settings{.id = id,
                                .type = options.frames,
                                .format = format,
                                .spec = options.chunk.spec,
                                .frames_limit = options.stream_frames,
                                .pause_frames = options.pause_frames,
                                .shed_after = options.shed_after,
                                .explain = request.explain,
                                .opened = Clock::now()};
  place.pipeline.hub().open({id, name, std::move(request.options), &returns_});
  outbox.ready(name, place.pipeline.name(), 0, size_of(format) * options.frames.values);
  LiveStream& live = table_.add(std::make_unique<LiveStream>(
      settings, std::move(name), std::move(connection),
      LiveStream::Place{place.pipeline, place.rows, place.blocks, place.stats, log_, retry_times_},
      outbox));
  return std::make_unique<LiveSink>(live, table_, admission_);
}

}  // namespace millrace
