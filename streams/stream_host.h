// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error_code.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/ready_row.h"

namespace millrace {

class Stream;

// The service, as seen by the streams of one pipeline on one thread: receives their rows, and
// notices for its log. Outlives the streams. Called on their thread; only released() may call the
// stream.
class StreamHost {
 public:
  virtual ~StreamHost() = default;

  // Accepts every row: a stream bounds its outstanding rows.
  virtual void add(StreamId stream, ReadyRow row) = 0;

  // Messages of workers were written to the stream's client, or dropped: this many bytes of its
  // room are free.
  virtual void free_room(StreamId /*stream*/, std::uint32_t /*bytes*/) {}

  // Notices about a stream, by its name: its client's connection was lost before its end; its
  // client probably sends wrong values; it cannot continue.
  virtual void client_lost(std::string_view /*stream*/, Time /*now*/) {}
  // Its client's connection was lost, and the stream waits for the next one.
  virtual void detached(std::string_view /*stream*/, Time /*now*/) {}
  virtual void warned(std::string_view /*stream*/, std::string_view /*message*/) {}
  virtual void failed(std::string_view /*stream*/, ErrorCode, std::string_view /*message*/) {}
  // The client of a stream that is not finished is gone: no client waits for its results. At most
  // once.
  virtual void abandoned(StreamId /*stream*/) {}
  // The stream no longer has a connection. It may be destroyed if it is finished().
  virtual void released(Stream&) {}
};

}  // namespace millrace
