// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/result_head.h"

namespace millrace {

// From a stream to its client: one virtual function for each message (docs/protocol.md), in the
// order in which the client receives them. Implemented by the client's connection, which queues
// each message until it is written. Messages after error() or closed() are dropped.
// It outlives the stream's handle (StreamInput). Called on the stream's io thread; no function may
// call the stream.
class ClientOutput {
 public:
  virtual ~ClientOutput() = default;

  // The client's address, such as "127.0.0.1:40000"; empty if unknown.
  virtual std::string peer() const { return {}; }

  // The first message.
  virtual void ready(const StreamReady& ready) = 0;
  // Accepts every result. While full(), only results of rows that were handed over before follow.
  // If it, message() or flushed() throws std::bad_alloc, the stream fails. Requires: the answer is
  // not `none`.
  virtual void result(const ResultHead& head, const Answer& answer) = 0;
  // A message of the worker, which is json, text or bytes. Counts as a result in written().
  virtual void message(const MessageHead& head, const Answer& message) = 0;
  // True while too many bytes are unwritten. StreamInput::written() follows when this changes.
  virtual bool full() const { return full_; }
  // True while less than half of what makes it full() is unwritten: what a stream has kept can be
  // given without holding up the client.
  virtual bool has_room() const { return !full(); }
  // `seq`: the row whose segment the flush with this mark ended.
  virtual void flushed(std::uint64_t mark, std::uint64_t seq) = 0;
  // A message was refused; its `frames` (of the pipeline) are a gap; the stream continues.
  virtual void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) = 0;
  // The client probably sends wrong values; the stream continues. A protocol without such a message
  // drops it.
  virtual void warning(ErrorCode code, std::string_view message) = 0;
  // The stream will end soon; the client should open another one.
  virtual void goaway() = 0;
  // The stream cannot continue.
  virtual void error(ErrorCode code, std::string_view message) = 0;
  // All results were written. Totals of frames, gaps not counted, and of rows with frames. Before
  // the place at which a stream was opened anew, all positions and rows count: it has no others.
  // `drained`: the stream ended by StreamInput::drain().
  virtual void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) = 0;

  // Drops the stream's unwritten messages, unless error() or closed() was called.
  virtual void drop_queued() = 0;
  // Bytes that drop_queued() and the end of the connection free; 0 after error() or closed().
  virtual std::size_t reclaimable() const = 0;

  // For clients that resume: the number of the message that the next call gives, valid until that
  // call has returned. It is called before each message but ready(), warning() and goaway().
  virtual void number(const MessageNumber& /*number*/) {}
  // All before this place is done, and its results were given.
  virtual void acknowledged(const ResumePoint& /*point*/) {}

  // For protocols that report what a stream does with its frames. Called only if follows_rows(). If
  // one of them throws std::bad_alloc, the stream fails.
  bool follows_rows() const { return follows_rows_; }
  // The voice detector found the first speech of a segment, from this second of the stream on.
  virtual void speech_began(double /*seconds*/) {}
  // A segment has ended. Called before any result of its LAST row.
  virtual void segment_ended(const SegmentEnd&) {}
  // Every row that the first `frames` frames of the pipeline complete is done, and its result was
  // given. Not called for each position, and more than once for some.
  virtual void settled(std::uint64_t /*frames*/) {}

  // StreamInput::paused() has become false.
  virtual void resume() = 0;
  // StreamInput::credit() was 0 and is positive now.
  virtual void credit_available() = 0;

 protected:
  bool full_ = false;
  bool follows_rows_ = false;  // does not change
};

}  // namespace millrace
