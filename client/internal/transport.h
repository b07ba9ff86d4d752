// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "client/internal/stream_pipe.h"
#include "schemas/stream_request.h"

namespace millrace {

// Carries the streams of a client over one protocol: sends the input queued in their pipes, adds
// the received events to them, and closes or fails each.
//
// Confined to the client's thread; destroyed after this thread has ended.
class Transport {
 public:
  virtual ~Transport() = default;

  // Opens a stream. Later the first event, a refusal or a loss is in `pipe`.
  virtual void open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) = 0;
  // A pipe's wake: it has input to send, is no longer held up, or is abandoned.
  virtual void woken(std::uint64_t stream) = 0;
  // Fails every stream as lost. Pending operations end soon afterwards.
  virtual void stop() = 0;
};

}  // namespace millrace
