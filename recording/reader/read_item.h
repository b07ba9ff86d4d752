// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// An event, as the chunker received it. `frames`: the values of a `frames` event, in the mapped
// file.
struct ReadEvent {
  Event event{};
  Time at{};
  Bytes frames{};
};

// A part of a stream that is missing: [begin, end) in positions, and `events` events. If both are
// empty, answers are missing, or the end of the stream is.
struct MissingPart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t events = 0;  // 0 if their number is not known: at the end of a stream
  std::string why{};         // "not recorded: queue_full", "damaged: file 3", "deleted"
  bool operator==(const MissingPart&) const = default;
};

using ReadItem = std::variant<ReadEvent, RecordedAnswer, StreamTotals>;

}  // namespace millrace::recording
