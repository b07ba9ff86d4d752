// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"

namespace millrace::load {

// What a client is told of a row: where its body stands, in frames of the pipeline.
struct Told {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;
  bool gap = false;            // the service lost frames before it
  bool failed = false;         // an error in place of an answer
  std::string_view data = {};  // the answer as it was sent, within the call
};

// What happens to the streams of a door, by their place.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void opened(std::uint32_t place, Time now) = 0;
  // It got no stream: what it was told, such as "503".
  virtual void refused(std::uint32_t place, std::string_view why, Time now) = 0;
  // A send was refused for want of room, and would not be now.
  virtual void has_room(std::uint32_t place) = 0;
  virtual void told(std::uint32_t place, const Told& result, Time now) = 0;
  // So many frames of it became a gap.
  virtual void rejected(std::uint32_t place, std::uint64_t frames) = 0;
  // The service had so many frames of it, and cut so many rows of them.
  virtual void closed(std::uint32_t place, std::uint64_t frames, std::uint64_t rows, Time now) = 0;
  // It ended otherwise, not by us.
  virtual void broken(std::uint32_t place, std::string_view why, Time now) = 0;
};

// One way into the service for many clients, each at its place. Waits only in poll(), and tells
// only there. Confined to one thread.
class ClientDoor {
 public:
  virtual ~ClientDoor() = default;

  // Opened() or refused() follows. Requires: the place has no stream.
  virtual void open(std::uint32_t place, const std::string& name) = 0;
  // Frames of an open stream. False: there is no room, has_room() follows; nothing was taken.
  [[nodiscard]] virtual bool send(std::uint32_t place, Bytes frames) = 0;
  // Closed() or broken() follows.
  virtual void end(std::uint32_t place) = 0;
  // Hangs up without a word; nothing follows.
  virtual void vanish(std::uint32_t place) = 0;

  // Tells what has happened; waits for that until `until`, and not at all if it has passed.
  virtual void poll(Time until, ClientSink& sink) = 0;
};

}  // namespace millrace::load
