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

// From a client's connection to its stream: what the client sent, in order, and what became of the
// connection. Any call may cause calls of the stream's ClientOutput, but for lost() and release().
// Confined to one thread.
class StreamInput {
 public:
  // Raw bytes in the client's format, of any length; a frame may straddle calls. `bytes` is valid
  // within the call. Should not be called while paused(): frames that come then are kept.
  virtual void frames(Bytes bytes, Time arrived) = 0;
  virtual void flush(std::optional<std::uint64_t> mark, Time arrived) = 0;
  virtual void reset(Time arrived) = 0;
  virtual void gap(std::uint64_t client_frames, Time arrived) = 0;  // in the client's own frames
  // The last call of the client's: all results follow, then ClientOutput::closed. Input after it is
  // rejected, a second end is ignored.
  virtual void end(Time arrived) = 0;

  // A message with this many of the client's frames was refused for a fault of its own: they become
  // a gap, the client is notified, and the stream continues.
  virtual void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                      Time now) = 0;
  // The stream cannot continue: the client receives the error, and the stream aborts.
  virtual void fail(ErrorCode code, std::string_view message, Time now) = 0;
  // The service stops, or the connection is too old. The client receives `goaway` if it has not
  // yet; then the stream ends as by end(), and later input is ignored.
  virtual void drain(Time now) = 0;
  // The connection is lost. `clean`: the client closed it with code 1000, which counts as end().
  // Otherwise the stream aborts. No results are sent any more.
  virtual void lost(bool clean, Time now) = 0;

  // No more should be read from the client until ClientOutput::resume().
  bool paused() const { return paused_; }
  // For protocols with credit, which are never paused: the client's frames that the stream has room
  // for. If it is 0, ClientOutput::has_room() follows when it is no longer.
  virtual std::uint64_t room() const = 0;
  // More events wait than a client can have sent that respects paused() and its credit.
  virtual bool overrun() const = 0;

  // Time has passed. Called now and then while paused().
  virtual void tick(Time now) = 0;
  // The next `results` results, in order, were written to the client's socket, or only other
  // messages were.
  virtual void written(std::size_t results, Time now) = 0;

  // The last call: the connection and its ClientOutput go away. If lost() was not called, this
  // counts as lost(false). May destroy the stream.
  virtual void release(Time now) = 0;

 protected:
  ~StreamInput() = default;

  bool paused_ = false;
};

// The connection's end of a stream. Destroying it releases the stream.
struct ReleaseStream {
  void operator()(StreamInput* stream) const { stream->release(Clock::now()); }
};
using StreamHandle = std::unique_ptr<StreamInput, ReleaseStream>;

}  // namespace millrace
