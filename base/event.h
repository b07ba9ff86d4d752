// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace millrace {

// Why an event happened. It is recorded with the event, and decides the reason of a RESET.
enum class Cause : std::uint8_t {
  client,      // the client said so
  endpoint,    // a segment ended by silence or length
  load,        // frames were shed, or a size was chosen, by how busy the service is
  rejected,    // a message was refused; its frames are the gap
  connection,  // the connection was lost
  drain,       // the service is stopping
};

// What can happen to a stream, in order. A stream's rows are a pure function of its events.
struct Event {
  enum class Kind : std::uint8_t {
    open,    // the stream begins; always the first
    frames,  // `count` more frames arrived
    size,    // bodies have `count` frames, from the next one cut; where bodies lie end to end
    flush,   // the segment ends, the run goes on
    reset,   // the segment and the run end
    gap,     // `count` >= 1 frames were lost: the segment and the run end, positions skip them
    end,     // the stream ends
    abort,   // the stream died: frames that are in no ready row yet are dropped
  };

  Kind kind = Kind::open;
  Cause cause = Cause::client;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> mark = {};  // of a flush: the client's number for it
};

// Why a row's state must be fresh. Where two meet, the later one stands.
enum class ResetReason : std::uint8_t {
  none,
  start,
  client,
  endpoint,
  gap,
  overflow,
  worker_lost,
  failover,
};

}  // namespace millrace
