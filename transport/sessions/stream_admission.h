// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "schemas/stream_request.h"
#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// Accepts or refuses a client's stream, on the client's io thread. Called before the upgrade is
// answered, so a refusal is an HTTP error. Implemented by the service, which has the pipelines.
class StreamAdmission {
 public:
  virtual ~StreamAdmission() = default;
  // Opens a stream. Calls `output.ready()` before it returns the handle. `output` outlives the
  // handle.
  [[nodiscard]] virtual Result<StreamHandle, RequestError> open(StreamRequest request,
                                                                ClientOutput& output) = 0;
};

}  // namespace millrace
