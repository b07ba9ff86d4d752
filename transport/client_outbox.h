// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/answer.h"
#include "base/error_code.h"
#include "transport/server_messages.h"

namespace millrace {

// What the owner of a stream tells the stream's client, in this order of calls; written when the
// client takes it. It keeps everything that it is given: the owner gives no more than follows from
// what it began before full(). After error() or closed() nothing more is taken. Each front door has
// its own. Outlives the sink that was opened with it. Confined to one thread.
class ClientOutbox {
 public:
  virtual ~ClientOutbox() = default;

  // The client's address, "127.0.0.1:40000"; empty if it is not known.
  virtual std::string peer() const { return {}; }

  // See docs/protocol.md for what the client reads. First; `frame_bytes` are of one frame of the
  // client.
  virtual void ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames,
                     std::size_t frame_bytes) = 0;
  // Requires: the answer is not `none`. One that makes a message longer than `limits.told` becomes
  // an error of its row.
  virtual void result(const ResultHead& head, const Answer& answer) = 0;
  // From `limits.unsent` bytes that wait to be written on, until half of that waits.
  // StreamSink::written follows.
  virtual bool full() const = 0;
  virtual void flushed(std::uint64_t mark) = 0;
  // `frames` are the pipeline's.
  virtual void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) = 0;
  // Dropped by a door whose protocol has no message for it.
  virtual void warning(ErrorCode code, std::string_view message) = 0;
  virtual void goaway(std::chrono::milliseconds retry_after) = 0;
  virtual void error(ErrorCode code, std::string_view message) = 0;
  virtual void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) = 0;
  // What its client has not taken is dropped, unless it stands among what is for other streams, or
  // error() or closed() was called.
  virtual void drop_untaken() = 0;
  // Bytes that come back when error() is called: what is dropped then, and what is being written,
  // for which the client has little time then. 0 once it was called, or closed().
  virtual std::size_t reclaimable() const = 0;

  // The sink's paused() became false.
  virtual void resume() = 0;
  // The sink's room() was 0 and is no more.
  virtual void has_room() = 0;
};

}  // namespace millrace
