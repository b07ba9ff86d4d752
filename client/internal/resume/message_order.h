// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace millrace {

// The messages that one stream has received from the service, by their numbers (docs/protocol.md):
// each is delivered once, over any number of connections. Pure. Confined to the client's thread.
class MessageOrder {
 public:
  struct Place {
    std::uint64_t n = 0;                        // the message's number
    std::optional<std::uint64_t> result = {};   // the number of the row of a result
    std::optional<std::uint64_t> flushed = {};  // the same of a `flushed`
  };
  enum class Verdict {
    deliver,
    drop,     // it was received before
    invalid,  // messages before it are missing
    taken,    // not a message of the stream: another connection has continued it
  };
  Verdict receive(const Place& place);

  // All messages before this number were received.
  std::uint64_t next() const { return next_; }
  // All results of rows before this number were received.
  std::uint64_t results() const { return results_; }
  // The same for `flushed`.
  std::uint64_t flushed() const { return flushed_; }

  // The request of a new connection had next(). `kept` is false if the stream was opened anew:
  // results and `flushed` of rows that the client has are dropped if they come again.
  void resumed(bool kept, Time now);

  // When next() should be sent to the service; nullopt if the service knows it.
  std::optional<Time> ack_due() const;
  void acked(Time now);

 private:
  std::uint64_t next_ = 0, acked_ = 0;
  Time acked_at_{};
  std::uint64_t results_ = 0, flushed_ = 0;
  std::uint64_t old_results_ = 0, old_flushed_ = 0;  // those below are dropped
};

}  // namespace millrace
