// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/millrace_v1.h"

#include "load/protocols/native_session.h"
#include "load/protocols/resuming_session.h"
#include "transport/websocket/stream_target.h"
#include "transport/websocket/upgrade.h"

namespace millrace::load {

std::string MillraceV1::target(const std::string& stream) {
  request_.id = stream;
  return stream_target(request_);
}

std::string_view MillraceV1::subprotocol() const { return millrace::subprotocol; }

std::unique_ptr<ClientSession> MillraceV1::session(std::uint32_t client,
                                                   const std::string& stream) {
  if (!request_.resume) return std::make_unique<NativeSession>(client);
  request_.id = stream;
  return std::make_unique<ResumingSession>(client, request_);
}

}  // namespace millrace::load
