// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "transport/client_outbox.h"
#include "transport/request_error.h"
#include "transport/stream_request.h"
#include "transport/stream_sink.h"

namespace millrace {

// Who decides whether a client gets its stream. Asked before the upgrade is answered, on the
// client's io thread: a refusal is an HTTP error. Implemented by who knows the pipelines.
class Door {
 public:
  virtual ~Door() = default;
  // `outbox` outlives the sink; the sink's first message is ready().
  [[nodiscard]] virtual Result<std::unique_ptr<StreamSink>, RequestError> open(
      StreamRequest request, ClientOutbox& outbox) = 0;
};

}  // namespace millrace
