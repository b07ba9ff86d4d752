// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/deepgram.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "load/protocols/json_event.h"
#include "schemas/json_text.h"
#include "transport/websocket/stream_target.h"

namespace millrace::load {

namespace {

namespace json = boost::json;

// A final covers a commit although its end is this much before it, in seconds.
constexpr double tolerance = 0.1;

std::string_view encoding_of(SampleFormat format) {
  switch (format) {
    case SampleFormat::s16le: return "linear16";
    case SampleFormat::mulaw: return "mulaw";
    case SampleFormat::alaw: return "alaw";
    default: throw std::invalid_argument("--format: Deepgram has only s16le, mulaw and alaw here");
  }
}

std::string_view transcript_in(const json::value& results) {
  const json::value* alternatives = member(member(&results, "channel"), "alternatives");
  const json::array* array = alternatives ? alternatives->if_array() : nullptr;
  return array && !array->empty() ? string_in(&array->front(), "transcript") : "";
}

class DeepgramSession final : public ForeignSession {
 public:
  DeepgramSession(std::uint32_t client, const ForeignStreams& streams)
      : ForeignSession(client, streams.named),
        bytes_per_second_(streams.rate * static_cast<double>(size_of(streams.format))) {}

  void send(Bytes frames, FrameWriter& to) override {
    sent_ += static_cast<double>(frames.size()) / bytes_per_second_;
    to.write(Opcode::binary, text_in(frames));
  }

  void commit(Time due, FrameWriter& to) override {
    commits_.push_back({due, sent_});
    to.write(Opcode::text, R"({"type":"Finalize"})");
  }

  void end(FrameWriter& to) override { to.write(Opcode::text, R"({"type":"CloseStream"})"); }

 private:
  struct Commit {
    Time due{};
    double position = 0;  // seconds of the stream
  };

  bool handle(const json::value& event, Time now, ClientSink& sink, FrameWriter&) override {
    const std::string_view type = string_in(&event, "type");
    if (type == "Results") handle_results(event, now, sink);
    if (type == "Metadata") ended_ = true;
    if (type != "Error") return true;
    why_ = string_in(&event, "description");
    return false;
  }

  void handle_results(const json::value& event, Time now, ClientSink& sink) {
    const double end = number_in(&event, "start") + number_in(&event, "duration");
    report_text(transcript_in(event), end, now, sink);
    const json::value* finalized = member(&event, "from_finalize");
    if (finalized && finalized->is_bool() && finalized->get_bool()) finish(end, now, sink);
  }

  // A service need not answer every commit: the position of the final shows which one it answers.
  void finish(double end, Time now, ClientSink& sink) {
    if (commits_.empty()) return;
    std::size_t count = 0;
    while (count < commits_.size() && commits_[count].position <= end + tolerance) ++count;
    const auto last =
        commits_.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(count, 1));
    sink.finished(client(), std::prev(last)->due, false, now);
    commits_.erase(commits_.begin(), last);
  }

  const double bytes_per_second_;
  double sent_ = 0;              // seconds
  std::vector<Commit> commits_;  // those that are not finished
};

}  // namespace

DeepgramClients::DeepgramClients(ForeignStreams streams) : streams_(std::move(streams)) {
  std::string rate, &target = streams_.target;
  append_number(rate, streams_.rate);
  add_path(target, "/v1/listen");
  add_parameter(target, "encoding", encoding_of(streams_.format));
  add_parameter(target, "sample_rate", rate);
  add_parameter(target, "channels", "1");
  add_parameter(target, "interim_results", "true");
  if (!streams_.model.empty()) add_parameter(target, "model", streams_.model);
}

std::string DeepgramClients::target(const std::string& stream) {
  std::string target = streams_.target;
  if (streams_.named) append_parameter(target, "keyterm", stream);
  return target;
}

std::unique_ptr<ClientSession> DeepgramClients::session(std::uint32_t client, const std::string&) {
  return std::make_unique<DeepgramSession>(client, streams_);
}

}  // namespace millrace::load
