// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "load/protocols/client_sink.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// The streams of many simulated clients over one protocol. Clients are identified by their index,
// and have at most one stream at a time. Waits and calls the sink only in poll(). Confined to one
// thread.
class LoadTransport {
 public:
  virtual ~LoadTransport() = default;

  // Opens a stream: opened() or refused() follows. Requires: the client has no stream.
  virtual void open(std::uint32_t client, const std::string& name) = 0;
  // Sends frames of an open stream. False if the stream or connection is full: nothing was sent,
  // and writable() follows.
  [[nodiscard]] virtual bool send(std::uint32_t client, Bytes frames) = 0;
  // Asks for the result of the audio so far: finished() follows. `due`: when its last packet was
  // due.
  virtual void commit(std::uint32_t client, Time due) = 0;
  // Ends a stream: closed() or broken() follows.
  virtual void end(std::uint32_t client) = 0;
  // Cuts the connection of an open stream, at once or within the next send(), which follows. The
  // stream resumes: resumed() or broken() follows. False if it has no connection.
  virtual bool cut(std::uint32_t, const Cut&) { return false; }
  // Drops the stream without an end. No event of it follows.
  virtual void disconnect(std::uint32_t client) = 0;

  // Passes events to the sink. Waits for one until `until`.
  virtual void poll(Time until, ClientSink& sink) = 0;
};

}  // namespace millrace::load
