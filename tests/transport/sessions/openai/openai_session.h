// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "tests/support/memory_connection.h"
#include "tests/transport/sessions/plain_stream.h"
#include "transport/base64/base64.h"
#include "transport/sessions/openai/conversation.h"
#include "transport/sessions/session.h"

namespace millrace {

// Refuses the requests of a kind.
class ChoosyAdmission final : public StreamAdmission {
 public:
  Result<StreamHandle, RequestError> open(StreamRequest request, const ClientIdentity& client,
                                          ClientOutput& output) override {
    if (auto refused = refusal(request, client)) return std::move(*refused);
    requests.push_back(request);
    return streams.open(std::move(request), client, output);
  }
  std::optional<RequestError> refusal(const StreamRequest& request,
                                      const ClientIdentity&) override {
    if ((!has_detector || request.pipeline == "music") && request.ends.by == SegmentEnds::By::voice)
      return RequestError{.status = 415, .parameter = "endpoint", .message = "no detector"};
    if (request.rate == 7)
      return RequestError{.status = 415, .parameter = "rate", .message = "no such rate"};
    return refuses;
  }

  test::PlainAdmission streams{{.size = 4}, 1000, format_of(SampleFormat::s16le, {})};
  std::vector<StreamRequest> requests;
  std::optional<RequestError> refuses;
  bool has_detector = true;
};

// A session, by default one whose client commits.
struct OpenAiSession {
  explicit OpenAiSession(bool detects = false) {
    SessionSettings settings(pipelines, "");
    if (!detects) (void)settings.update(R"({"audio":{"input":{"turn_detection":null}}})");
    talk.emplace(scope, ClientIdentity{.peer = "127.0.0.1:1"}, admission, settings);
    scope.spawn(run_session(scope, gate, client, *talk));
    settle();
  }
  ~OpenAiSession() {
    client.end({});
    settle();
    scope.stop();
    settle();
  }

  void settle() {
    context.restart();
    context.poll();
  }
  void says(std::string text) {
    client.text(std::move(text));
    settle();
  }
  void appends(std::string_view audio) {
    says(R"({"type":"input_audio_buffer.append","audio":")" + base64(audio) + R"("})");
  }
  void commits() { says(R"({"type":"input_audio_buffer.commit"})"); }
  void clears() { says(R"({"type":"input_audio_buffer.clear"})"); }
  void updates(std::string_view members) {
    says(R"({"session":{"type":"transcription","audio":{"input":{)" + std::string(members) +
         R"(}}},"type":"session.update"})");
  }
  test::PlainStream& stream() { return *admission.streams.streams.back(); }
  // The next row of the newest stream is done.
  void answer(std::string data, Answer::Kind kind = Answer::Kind::json) {
    stream().stream.batched(stream().answered, Clock::now());
    stream().stream.done({.seq = stream().answered++, .answer = {kind, std::move(data)}},
                         Clock::now());
    settle();
  }
  void after(Duration time) {
    scope.sweep(Clock::now() + time);
    settle();
  }

  // The events since the last call, as "TYPE N TEXT": the number of the item, and its text.
  using Lines = std::vector<std::string>;
  Lines seen() {
    Lines lines;
    for (const std::string& event : std::exchange(client.seen, {})) {
      if (event == "<ping>") continue;
      std::string line = string_value(member_text(event, "type"));
      line.erase(0, line.starts_with("session") ? 0 : line.rfind('.') + 1);
      if (const auto item = member_text(event, "item_id"); !item.empty())
        line += " " + string_value(item).substr(string_value(item).rfind('_') + 1);
      for (const char* text : {"delta", "transcript"})
        if (const auto value = member_text(event, text); !value.empty())
          line += " " + string_value(value);
      lines.push_back(std::move(line));
    }
    return lines;
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  SessionScope scope{context.get_executor(), limits, stats};
  ClientGate gate{.sockets = Budget(10), .waiting = Budget(10)};
  ChoosyAdmission admission;
  ModelPipelines pipelines{.models = {{"singer", "music"}}};
  MemoryConnection client{context.get_executor()};
  std::optional<OpenAiConversation> talk;
};

}  // namespace millrace
