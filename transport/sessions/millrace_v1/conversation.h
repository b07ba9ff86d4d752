// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/answer.h"
#include "schemas/client_command.h"
#include "transport/sessions/conversation.h"
#include "transport/sessions/frames_in_pieces.h"

namespace millrace {

// A client of millrace.v1 (docs/protocol.md). It has one stream, opened at the upgrade; the
// connection ends with the stream. Confined to one thread.
class MillraceV1Conversation final : public Conversation {
 public:
  MillraceV1Conversation(SessionScope& scope, ClientIdentity client)
      : Conversation(scope, std::move(client)) {}

  std::optional<RequestError> open(StreamAdmission& admission, StreamRequest request);
  void received(const Connection::Message& message) override;
  bool is_unfinished() const override { return !pieces_.empty(); }
  void proceed() override;
  bool has_ended() const override { return ended_; }

  void ready(const StreamReady& ready) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void message(const MessageHead& head, const Answer& message) override;
  void flushed(std::uint64_t mark, std::uint64_t seq) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode code, std::string_view message) override;
  void goaway() override;
  // Also closes the connection, with the close code of the error.
  void error(ErrorCode code, std::string_view message) override;
  // Also closes the connection, with 1000, or 1012 if `drained`.
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;
  void number(const MessageNumber& number) override { number_ = &number; }
  void acknowledged(const ResumePoint& point) override;

 private:
  void handle_frames(const Connection::Message& message);
  void handle_command(const Connection::Message& message);
  void apply_command(const ClientMessage& command, Time arrived);
  bool rejects_input();
  Connection::Kind append_answer(const ResultHead& head, const Answer& answer,
                                 const MessageNumber* number);
  void append_bytes(const ResultHead& head, std::string_view data, const MessageNumber* number);
  template <class Append>
  void send(Append append);
  template <class Append>
  void send_in_order(Append append);
  const MessageNumber* take_number() { return std::exchange(number_, nullptr); }

  FramesInPieces pieces_;
  const MessageNumber* number_ = nullptr;  // that the next message has, or null
  std::uint64_t rejections_ = 0;           // messages `rejected` so far
  bool ended_ = false;                     // the client has sent its end
};

}  // namespace millrace
