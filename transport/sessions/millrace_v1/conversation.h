// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/answer.h"
#include "schemas/client_command.h"
#include "transport/sessions/conversation.h"

namespace millrace {

// A client of millrace.v1 (docs/protocol.md): one stream, opened at the upgrade; the connection
// ends with it. Confined to one thread.
class MillraceV1Conversation final : public Conversation {
 public:
  MillraceV1Conversation(SessionScope& scope, std::string peer)
      : Conversation(scope, std::move(peer)) {}

  using Conversation::open;
  void received(const Connection::Message& message) override;
  bool has_ended() const override { return ended_; }

  void ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames,
             std::size_t frame_bytes) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void flushed(std::uint64_t mark) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode code, std::string_view message) override;
  void goaway() override;
  // Then the connection is closed with the error's code.
  void error(ErrorCode code, std::string_view message) override;
  // Then the connection is closed with 1000, or 1012 at a drain.
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;

 private:
  void take_frames(const Connection::Message& message);
  void take_command(const Connection::Message& message);
  void obey(const ClientMessage& command, Time arrived);
  bool refuses_input();
  Connection::Kind append_answer(const ResultHead& head, const Answer& answer);
  void append_bytes(const ResultHead& head, std::string_view data);
  template <class Append>
  void send(Append append);

  std::uint64_t rejections_ = 0;  // so far
  bool ended_ = false;            // by the client
};

}  // namespace millrace
