// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/explanation.h"
#include "base/ids.h"
#include "base/instants.h"
#include "base/time.h"
#include "chunker/ready_row.h"

namespace millrace {

// Where a stream's rows go. Implemented by who knows the lanes; called on the stream's io thread.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Takes every row: room is bounded by what a stream may have outstanding.
  virtual void add(StreamId stream, ReadyRow row) = 0;
};

// A row that is done, as the lane gives it back.
struct DoneRow {
  std::uint64_t seq = 0;
  Answer answer{};
  Instants at{};  // up to `done`
  RowPlace place{};
  std::uint8_t flags = 0;                  // that its lane added: a RESET where a worker was lost
  ResetReason reason = ResetReason::none;  // as its lane has it
};

// A result on its way to the client.
struct StreamResult {
  Row row;
  Answer answer;                             // never `none`
  std::optional<Explanation> explanation{};  // where the stream gives them
};

// The client's end as the stream sees it: what it is told, in this order of calls. Implemented by
// the owner of the connection; called on the stream's io thread.
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  // Takes every result. While full(), only those of rows that were handed over before follow. If it
  // or flushed() throws std::bad_alloc, the stream fails.
  virtual void result(StreamResult result) = 0;
  // Too much waits to be written to the client. Stream::written() follows when that has changed.
  virtual bool full() const = 0;
  virtual void flushed(std::uint64_t mark) = 0;
  // A message was refused; its `frames` (of the pipeline) are a gap; the stream goes on.
  virtual void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) = 0;
  // The stream goes on, but what its client sends is probably wrong.
  virtual void warning(ErrorCode code, std::string_view message) = 0;
  // The stream cannot go on; the connection is to be closed.
  virtual void error(ErrorCode code, std::string_view message) = 0;
  // All results were written; totals of frames, gaps not counted, and of rows with frames. The
  // connection is to be closed.
  virtual void closed(std::uint64_t frames, std::uint64_t chunks) = 0;
  // paused() went from true to false.
  virtual void resume() = 0;
  // room() was 0 and is no more.
  virtual void has_room() = 0;
};

}  // namespace millrace
