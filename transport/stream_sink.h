// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error_code.h"
#include "base/time.h"

namespace millrace {

// What a session tells the owner of its stream, in the order of the connection. Implemented by who
// owns the stream; destroyed after lost(), or without it, which is lost(false). It may put messages
// into its outbox within any call, lost() excepted. Confined to one thread.
class StreamSink {
 public:
  virtual ~StreamSink() = default;

  // Raw bytes, in the client's format; a frame may straddle calls. Valid within the call. Not
  // called while paused().
  virtual void frames(Bytes bytes, Time arrived) = 0;
  virtual void flush(std::optional<std::uint64_t> mark, Time arrived) = 0;
  virtual void reset(Time arrived) = 0;
  virtual void gap(std::uint64_t client_frames, Time arrived) = 0;
  // The stream ends: all of its results, then ClientOutbox::closed. None of the calls above
  // follows.
  virtual void end(Time arrived) = 0;

  // The stream cannot go on, by what the client did or did not: it aborts. The sink may call
  // ClientOutbox::error; if it does not, the session does. Of the calls here only lost() follows.
  virtual void refused(ErrorCode code, std::string_view message, Time now) = 0;

  // The connection is as old as it may get: the stream ends as at a drain of the service, its
  // client is told so and comes again. What the client says until then counts no longer.
  virtual void retire(Time now) = 0;

  // The connection is gone. Always the last call, once, however the stream ended. `clean`: the
  // client closed with 1000. A stream that still runs ends (clean) or aborts; nobody reads its
  // results.
  virtual void lost(bool clean, Time now) = 0;

  // A message of so many frames (the client's) was refused for a fault of its own: they are a gap,
  // the client is told, the stream goes on.
  virtual void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                      Time now) = 0;

  // What is behind is full: the client is not read until ClientOutbox::resume.
  virtual bool paused() const = 0;

  // For doors that read on, and give credit instead. Frames (the client's) that there is room for;
  // once it is 0, ClientOutbox::has_room says when it is no more.
  virtual std::uint64_t room() const = 0;
  // More of anything else waits than can be of a client that waits its turn.
  virtual bool overrun() const = 0;

  // Time has passed while it was paused.
  virtual void tick(Time now) = 0;

  // Messages were given to the socket, among them so many more results, in their order.
  virtual void written(std::size_t results, Time now) = 0;
};

}  // namespace millrace
