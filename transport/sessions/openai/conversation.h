// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/sessions/conversation.h"
#include "transport/sessions/frames_in_pieces.h"
#include "transport/sessions/openai/session_settings.h"
#include "transport/sessions/openai/utterances.h"

namespace millrace {

// A client of OpenAI's Realtime transcription (docs/protocols.md). Its first audio opens a stream.
// The stream ends when the client is silent for long, or changes the input or the detection of
// speech; its next audio opens the next one. Confined to one thread.
class OpenAiConversation final : public Conversation, UtteranceEvents {
 public:
  // `admission` outlives it. Sends `session.created`.
  OpenAiConversation(SessionScope& scope, ClientIdentity client, StreamAdmission& admission,
                     SessionSettings settings);

  void received(const Connection::Message& message) override;
  bool is_unfinished() const override { return !pieces_.empty(); }
  void proceed() override;
  std::chrono::milliseconds longest_wait() const override;
  bool outlives_silence(Time now) override;
  bool has_ended() const override { return false; }
  std::size_t reclaimable() const override { return Conversation::reclaimable() + pieces_.bytes(); }

  void ready(const StreamReady&) override {}
  void result(const ResultHead& head, const Answer& answer) override;
  void message(const MessageHead&, const Answer&) override { queue().add_result(); }
  void flushed(std::uint64_t, std::uint64_t) override {}
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode, std::string_view) override {}
  void goaway() override {}
  void speech_began(double seconds) override { utterances_.speech_began(seconds); }
  void segment_ended(const SegmentEnd& end) override { utterances_.segment_ended(end); }
  void settled(std::uint64_t frames) override { utterances_.settled(frames); }
  // Also closes the connection, with the close code of the error.
  void error(ErrorCode code, std::string_view message) override;
  // Also closes the connection if `drained`.
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;

 private:
  void handle(const Connection::Message& message);
  void update(std::string_view text, Time now);
  void append(std::string_view text, Time arrived);
  bool opens_stream();
  void reject(std::string_view parameter, std::string_view message);

  void report(UtteranceEvent event, const Utterance& utterance, std::string_view text) override;
  template <class Append>
  void send(std::string_view type, Append append);
  void send_session(std::string_view type);
  void send_error(std::string_view type, std::string_view code, std::string_view message,
                  std::string_view parameter = {});
  void append_item(std::string& out, std::uint64_t number) const;

  StreamAdmission& admission_;
  const std::string id_;  // in the ids of the session and of its items
  SessionSettings settings_;
  Utterances utterances_{*this};
  FramesInPieces pieces_;
  std::uint64_t events_ = 0;  // events sent
  std::string event_id_;      // JSON, that of the message in progress, or empty
};

}  // namespace millrace
