// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/openai.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "load/protocols/json_event.h"
#include "schemas/json_text.h"
#include "transport/base64/base64.h"

namespace millrace::load {

namespace {

namespace json = boost::json;

constexpr std::string_view transcription = "conversation.item.input_audio_transcription.";
constexpr std::string_view normal_close = "\x03\xe8";  // 1000

std::string format_of(const ForeignStreams& streams) {
  switch (streams.format) {
    case SampleFormat::mulaw: return R"({"type":"audio/pcmu"})";
    case SampleFormat::alaw: return R"({"type":"audio/pcma"})";
    case SampleFormat::s16le: break;
    default: throw std::invalid_argument("--format: OpenAI has only s16le, mulaw and alaw");
  }
  std::string format = R"({"type":"audio/pcm","rate":)";
  append_number(format, streams.rate);
  return format += '}';
}

std::string session_update(const ForeignStreams& streams, const std::string& name) {
  std::string members;
  const auto add = [&members](std::string_view member, std::string_view value) {
    append_string(members.append(members.empty() ? "" : ",").append(member), value);
  };
  if (!streams.model.empty()) add(R"("model":)", streams.model);
  if (streams.named) add(R"("prompt":)", name);
  std::string message =
      R"({"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":)";
  message += format_of(streams);
  if (!members.empty()) message.append(R"(,"transcription":{)").append(members) += '}';
  return message += R"(,"turn_detection":null}}}})";
}

class OpenAiSession final : public ForeignSession {
 public:
  OpenAiSession(std::uint32_t client, bool named, std::string update)
      : ForeignSession(client, named), update_(std::move(update)) {}

  void start(Time, ClientSink&) override {}  // session.created follows

  void send(Bytes frames, FrameWriter& to) override {
    std::string message = R"({"type":"input_audio_buffer.append","audio":")";
    to.write(Opcode::text, message.append(base64(text_in(frames))) += "\"}");
  }

  void commit(Time due, FrameWriter& to) override {
    commits_.push_back({due, {}});
    to.write(Opcode::text, R"({"type":"input_audio_buffer.commit"})");
  }

  void end(FrameWriter& to) override {
    ending_ = true;
    close_when_done(to);
  }

 private:
  struct Commit {
    Time due{};
    std::string item;  // empty until the service names it
  };

  bool handle(const json::value& event, Time now, ClientSink& sink, FrameWriter& to) override {
    std::string_view type = string_in(&event, "type");
    if (type == "error") return refuse(event);
    if (type == "session.created" && !update_.empty())
      to.write(Opcode::text, std::exchange(update_, {}));
    if (type == "session.updated" && !is_open()) open(now, sink);
    if (type == "input_audio_buffer.committed") name_commit(string_in(&event, "item_id"));
    if (!type.starts_with(transcription)) return true;
    type.remove_prefix(transcription.size());
    if (type == "delta") report_text(string_in(&event, "delta"), std::nullopt, now, sink);
    if (type == "completed" || type == "failed")
      finish(string_in(&event, "item_id"), type == "failed", now, sink);
    close_when_done(to);
    return true;
  }

  bool refuse(const json::value& event) {
    const json::value* error = member(&event, "error");
    why_ = string_in(error, "code");
    const std::string_view message = string_in(error, "message");
    if (!message.empty()) why_.append(why_.empty() ? "" : ": ").append(message);
    return false;
  }

  void name_commit(std::string_view item) {
    const auto commit = std::ranges::find(commits_, std::string(), &Commit::item);
    if (commit != commits_.end()) commit->item = item;
  }

  // Transcriptions of different items may be completed in any order.
  void finish(std::string_view item, bool failed, Time now, ClientSink& sink) {
    auto commit = std::ranges::find(commits_, item, &Commit::item);
    if (commit == commits_.end()) return;
    sink.finished(client(), commit->due, failed, now);
    commits_.erase(commit);
  }

  void close_when_done(FrameWriter& to) {
    if (!ending_ || ended_ || !commits_.empty()) return;
    ended_ = true;
    to.write(Opcode::close, normal_close);
  }

  std::string update_;
  std::vector<Commit> commits_;  // those that are not finished
  bool ending_ = false;
};

}  // namespace

OpenAiClients::OpenAiClients(ForeignStreams streams) : streams_(std::move(streams)) {
  (void)format_of(streams_);
  add_path(streams_.target, "/v1/realtime");
  add_parameter(streams_.target, "intent", "transcription");
}

std::string OpenAiClients::target(const std::string&) { return streams_.target; }

std::unique_ptr<ClientSession> OpenAiClients::session(std::uint32_t client,
                                                      const std::string& stream) {
  return std::make_unique<OpenAiSession>(client, streams_.named, session_update(streams_, stream));
}

}  // namespace millrace::load
