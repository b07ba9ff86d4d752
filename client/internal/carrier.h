// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "client/internal/stream_pipe.h"
#include "schemas/stream_request.h"

namespace millrace {

// Carries the streams of a client to a service and back, over one kind of door: sends what their
// pipes hold, fills them with what comes, and tells each how it ended.
//
// Confined to the client's thread; destroyed when that does not run any more.
class Carrier {
 public:
  virtual ~Carrier() = default;

  virtual void open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) = 0;
  // A pipe's wake: there is something to send, or room for what comes, or it is abandoned.
  virtual void woken(std::uint64_t stream) = 0;
  // Every stream is lost; soon afterwards nothing of it is waiting any more.
  virtual void stop() = 0;
};

}  // namespace millrace
