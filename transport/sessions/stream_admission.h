// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "schemas/stream_request.h"
#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/access/client_identity.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// Accepts or refuses a client's stream, on the client's io thread. Called before the upgrade is
// answered, so a refusal is an HTTP error. Implemented by the service, which has the pipelines.
class StreamAdmission {
 public:
  virtual ~StreamAdmission() = default;
  // Opens a stream of the client. Calls `output.ready()` before it returns the handle. `output`
  // outlives the handle.
  [[nodiscard]] virtual Result<StreamHandle, RequestError> open(StreamRequest request,
                                                                const ClientIdentity& client,
                                                                ClientOutput& output) = 0;
  // The error with which open() would refuse the request now; nullopt if it would accept it. Opens
  // nothing and reserves nothing. By default no request is refused.
  [[nodiscard]] virtual std::optional<RequestError> refusal(const StreamRequest&,
                                                            const ClientIdentity&) {
    return std::nullopt;
  }
  // The index of the io thread that has the stream which the request continues; nullopt if this
  // thread has it, or no thread.
  [[nodiscard]] virtual std::optional<std::uint32_t> thread_of(const StreamRequest&,
                                                               const ClientIdentity&) const {
    return std::nullopt;
  }
};

}  // namespace millrace
