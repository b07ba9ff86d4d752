// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "tests/support/memory_connection.h"
#include "tests/transport/sessions/plain_stream.h"
#include "transport/sessions/deepgram/deepgram.h"
#include "transport/sessions/session.h"

namespace millrace {

// Refuses the requests of a kind.
class ListenAdmission final : public StreamAdmission {
 public:
  Result<StreamHandle, RequestError> open(StreamRequest request, const ClientIdentity& client,
                                          ClientOutput& output) override {
    if (auto refused = refusal(request, client)) return std::move(*refused);
    requests.push_back(request);
    return streams.open(std::move(request), client, output);
  }
  std::optional<RequestError> refusal(const StreamRequest& request,
                                      const ClientIdentity&) override {
    if (!has_detector && request.ends.by == SegmentEnds::By::voice)
      return RequestError{.status = 415, .parameter = "endpoint", .message = "no detector"};
    return refuses;
  }

  test::PlainAdmission streams{{.size = 4}, 1000, format_of(SampleFormat::s16le, {})};
  std::vector<StreamRequest> requests;
  std::optional<RequestError> refuses;
  bool has_detector = true;
};

// The scope of a session, and the protocol.
struct DeepgramProtocol {
  // The status of the answer to a request, whose body is `body` if it is refused.
  unsigned status(std::string target, std::string subprotocol = "") {
    HttpQuery query{.method = "GET",
                    .target = std::move(target),
                    .fields = {{"Host", "here"},
                               {"Connection", "Upgrade"},
                               {"Upgrade", "websocket"},
                               {"Sec-WebSocket-Version", "13"},
                               {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
    if (!subprotocol.empty()) query.fields.emplace_back("Sec-WebSocket-Protocol", subprotocol);
    auto result = protocol.accept(query, scope, {.peer = "127.0.0.1:1"});
    if (!result) {
      body = protocol.answer(result.error(), scope).body;
      return result.error().status;
    }
    echoed = result->upgrade.subprotocol;
    accepted.push_back(std::move(*result));
    return 101;
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  SessionScope scope{context.get_executor(), limits, stats};
  ListenAdmission admission;
  Deepgram protocol{admission, {}};
  std::vector<WebSocketProtocol::Accepted> accepted;
  std::string body, echoed;
};

// A session with these parameters.
struct Listened : DeepgramProtocol {
  explicit Listened(const std::string& query = "interim_results=true") {
    REQUIRE(status("/v1/listen?encoding=linear16&sample_rate=16000&" + query) == 101);
    scope.spawn(run_session(scope, gate, client, *accepted[0].conversation));
    settle();
  }
  ~Listened() {
    client.end({});
    settle();
    scope.stop();
    settle();
  }

  void settle() {
    context.restart();
    context.poll();
  }
  Conversation& talk() { return *accepted[0].conversation; }
  void says(std::string text) {
    client.text(std::move(text));
    settle();
  }
  void sends(std::string audio) {
    client.binary(std::move(audio));
    settle();
  }
  void finalizes() { says(R"({"type": "Finalize"})"); }
  void closes() { says(R"({"type": "CloseStream"})"); }
  test::PlainStream& stream() { return *admission.streams.streams.back(); }
  // The next row is done.
  void answer(std::string data, Answer::Kind kind = Answer::Kind::json) {
    stream().stream.batched(stream().answered, Clock::now());
    stream().stream.done({.seq = stream().answered++, .answer = {kind, std::move(data)}},
                         Clock::now());
    settle();
  }

  // The messages since the last call, as "TYPE text": of results "interim", or "final" and what
  // ended their segment.
  using Lines = std::vector<std::string>;
  Lines seen() {
    Lines lines;
    for (const std::string& message : std::exchange(client.seen, {})) {
      if (message == "<ping>") continue;
      CHECK(is_json_object(message));
      std::string line = string_value(member_text(message, "type"));
      if (line == "Results") {
        line = member_text(message, "is_final") == "true" ? "final" : "interim";
        if (member_text(message, "speech_final") == "true") line += " speech";
        if (member_text(message, "from_finalize") == "true") line += " finalize";
        const auto begin = message.find(R"("transcript":)") + 13;
        const auto end = message.find(R"(,"confidence":)", begin);
        line += " " + string_value(std::string_view(message).substr(begin, end - begin));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  ClientGate gate{.sockets = Budget(10), .waiting = Budget(10)};
  MemoryConnection client{context.get_executor()};
};

}  // namespace millrace
