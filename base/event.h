// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace millrace {

// Why an event happened. Recorded with the event; determines the reason of a RESET.
enum class Cause : std::uint8_t {
  client,      // sent by the client
  endpoint,    // a segment ended by silence, by length or by a worker
  load,        // the service is busy: frames were shed, or a size was chosen
  drawn,       // a size was drawn at random
  rejected,    // a message was rejected; its frames are the gap
  connection,  // the connection was lost
  drain,       // the service is stopping
  recorder,    // only in recordings: a part of the stream was not recorded, or cannot be read
};

// A number below 2^64 - 1, or no number: in 8 bytes, because streams keep events in memory.
class OptionalNumber {
 public:
  constexpr OptionalNumber() = default;
  constexpr OptionalNumber(std::nullopt_t) {}
  constexpr OptionalNumber(std::uint64_t number) : number_(number) {}
  constexpr OptionalNumber(const std::optional<std::uint64_t>& number)
      : number_(number.value_or(none)) {}

  constexpr bool has_value() const { return number_ != none; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr std::uint64_t operator*() const { return number_; }
  constexpr std::uint64_t value_or(std::uint64_t other) const {
    return has_value() ? number_ : other;
  }
  constexpr operator std::optional<std::uint64_t>() const {
    return has_value() ? std::optional(number_) : std::nullopt;
  }
  bool operator==(const OptionalNumber&) const = default;

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t number_ = none;
};

// One thing that happens to a stream. A stream's rows are a pure function of its events, in order.
struct Event {
  enum class Kind : std::uint8_t {
    open,    // the stream begins; always the first. It may have begun elsewhere: opened_anew()
    frames,  // `count` more frames arrived
    size,  // bodies have `count` frames, from the next one cut; requires that bodies lie end to end
    flush,    // the segment ends, the run continues
    reset,    // the segment and the run end
    gap,      // `count` >= 1 frames were lost: the segment and the run end, positions skip them
    end,      // the stream ends
    abort,    // the stream ended without `end`: frames in no ready row are dropped
    message,  // a text of `count` bytes for the worker, which the next row carries; cuts nothing
    set,      // the same: a JSON object that changes the options of the stream
  };

  Kind kind = Kind::open;
  Cause cause = Cause::client;
  std::uint64_t count = 0;
  OptionalNumber mark = {};  // the client's number of a flush
  std::uint64_t rows = 0;    // an open: the stream's rows before it

  // True for an open of a stream that continues here, after it was lost elsewhere: its positions
  // begin at `count`, and its rows with number `rows`.
  bool opened_anew() const { return kind == Kind::open && (count > 0 || rows > 0); }
  // True for the kinds that have a text. The text is not in the event.
  bool has_text() const { return kind == Kind::message || kind == Kind::set; }
};

// Why the state must be fresh before a row. If two reasons coincide, the later one counts.
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
