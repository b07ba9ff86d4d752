// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/sessions/conversation.h"
#include "transport/websocket/stream_target.h"

namespace millrace {

// The protocol millrace.v1: GET /v1/stream with the parameters of a stream. The client need not
// list the subprotocol, so that any WebSocket client can be used.
class MillraceV1 final : public WebSocketProtocol {
 public:
  // `admission` outlives it.
  explicit MillraceV1(StreamAdmission& admission) : admission_(admission) {}

  std::string_view path() const override { return stream_path; }
  Result<Accepted, RequestError> accept(const HttpQuery& query, SessionScope& scope,
                                        const ClientIdentity& client) override;
  bool resumes(const HttpQuery& query) const override;
  std::optional<std::uint32_t> thread_of(const HttpQuery& query,
                                         const ClientIdentity& client) const override;

 private:
  StreamAdmission& admission_;
};

}  // namespace millrace
