// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "schemas/stream_request.h"
#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// Decides whether a client gets its stream, on the client's io thread. Asked before the upgrade is
// answered: a refusal is an HTTP error. Implemented by the service, which knows the pipelines.
class StreamAdmission {
 public:
  virtual ~StreamAdmission() = default;
  // Calls `output`.ready(). `output` outlives the handle.
  [[nodiscard]] virtual Result<StreamHandle, RequestError> open(StreamRequest request,
                                                                ClientOutput& output) = 0;
};

}  // namespace millrace
