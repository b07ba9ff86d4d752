// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error_code.h"
#include "base/time.h"

namespace millrace {

// How a connection ended: the client closed it with code 1000, which counts as the end of its
// stream; with 1001, because it goes elsewhere; or both sides closed it with another code; or it
// ended without a close.
enum class ConnectionEnd : std::uint8_t { clean, moved, closed, lost };

// From a client's connection to its stream: the client's messages, in order, and the end of the
// connection. Any call except disconnected() and release() may call the stream's ClientOutput.
// Confined to one thread.
class StreamInput {
 public:
  // Raw bytes in the client's format, of any length; a frame may straddle calls. If the format is
  // Opus: exactly one packet. `bytes` is valid during the call. Should not be called while
  // paused(); frames are kept even then.
  virtual void frames(Bytes bytes, Time arrived) = 0;
  // The number of bytes of a message that should be given to frames() at once. A message that takes
  // long is given in parts, so that the thread can do other work before the next part; one that is
  // short, or rejected as a whole, is given whole.
  virtual std::size_t piece(Bytes message) { return message.size(); }
  virtual void flush(std::optional<std::uint64_t> mark, Time arrived) = 0;
  virtual void reset(Time arrived) = 0;
  virtual void gap(std::uint64_t client_frames, Time arrived) = 0;  // in the client's own frames
  // A message for the worker, which the stream's next row carries: JSON. It is rejected if too many
  // bytes of messages wait for a row.
  virtual void post(std::string_view data, Time arrived) = 0;
  // A post with new values of the stream's options, a JSON object. It is also rejected if the
  // options are then too long.
  virtual void set(std::string_view options, Time arrived) = 0;
  // The client has all messages before number `n`. Only from a client that resumes.
  virtual void acknowledge(std::uint64_t n, Time now) = 0;
  // The client's last message: all results follow, then ClientOutput::closed. Input after it is
  // rejected; a second end is ignored.
  virtual void end(Time arrived) = 0;

  // A message with this many of the client's frames was invalid: the frames become a gap, the
  // client is notified, and the stream continues.
  virtual void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                      Time now) = 0;
  // A command of the client was invalid: the client is notified, and the stream continues.
  virtual void reject_command(ErrorCode code, std::string_view message, Time now) = 0;
  // The stream cannot continue: the client receives the error, and the stream aborts.
  virtual void fail(ErrorCode code, std::string_view message, Time now) = 0;
  // The service stops, or the connection has reached its age limit. The client receives `goaway`,
  // unless it has already; then the stream ends as by end(), and later input is ignored.
  virtual void drain(Time now) = 0;
  // The connection has ended. `clean` counts as end(). Otherwise the stream aborts, unless it
  // outlives its connection. No further results are sent.
  virtual void disconnected(ConnectionEnd how, Time now) = 0;

  // True while the client should not be read; ends with ClientOutput::resume().
  virtual bool paused() const { return paused_; }
  // For protocols with credit, which are never paused: the number of client frames that the stream
  // can accept now. If it is 0, ClientOutput::credit_available() follows when it is positive.
  virtual std::uint64_t credit() const = 0;
  // True if more events, or rejections, wait than a client that respects paused() and its credit
  // can cause.
  virtual bool overrun() const = 0;

  // Time has passed. Called repeatedly while paused().
  virtual void tick(Time now) = 0;
  // Called several times a second while the connection lasts.
  virtual void check(Time /*now*/) {}
  // The client may continue the stream over another connection.
  virtual bool outlives_connection() const { return false; }
  // end() was called, perhaps over an earlier connection, or the stream takes no input any more.
  virtual bool has_ended() const = 0;
  // The next `results` results and messages of workers, in order, were written to the client's
  // socket; 0 if only others were.
  virtual void written(std::size_t results, Time now) = 0;

  // The last call: the connection and its ClientOutput are about to be destroyed. Counts as
  // disconnected(lost) if disconnected() was not called. May destroy the stream.
  virtual void release(Time now) = 0;

 protected:
  ~StreamInput() = default;

  bool paused_ = false;
};

// A connection's handle of its stream. Destroying it releases the stream.
struct ReleaseStream {
  void operator()(StreamInput* stream) const { stream->release(Clock::now()); }
};
using StreamHandle = std::unique_ptr<StreamInput, ReleaseStream>;

}  // namespace millrace
