// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "base/answer.h"
#include "chunker/row.h"

namespace millrace {

// What a service tells a client of its stream, in the order of the stream (docs/protocol.md): the
// same over each door. Values that own what they hold.
namespace client_event {

// The first.
struct Opened {
  std::string stream;  // the name it has
  std::string pipeline;
  std::uint64_t frames = 0;  // the position to send from
  bool operator==(const Opened&) const = default;
};

// A worker's answer to a row. Positions are of the row's body, in frames of the pipeline.
struct Result {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;
  double begin_s = 0, end_s = 0;  // the same in seconds
  std::uint8_t flags = 0;         // of chunker/row.h: flag::last …
  // json: the value as the worker wrote it · text: a string, also where the worker wrote it as
  // JSON · bytes · error: a word, "worker_failed". Never none.
  Answer answer;
  // Where the time of the row went: a JSON object (docs/protocol.md). Empty unless the stream was
  // opened with `explain`, and in results in bytes.
  std::string explain{};
  bool operator==(const Result&) const = default;
};

// The last row of the segment that the flush with this mark ended is done.
struct Flushed {
  std::uint64_t mark = 0;
  bool operator==(const Flushed&) const = default;
};

// Something that was sent was refused, its frames count as a gap; the stream goes on.
struct Rejected {
  std::string code;
  std::string message;
  std::uint64_t frames = 0;  // of the pipeline
  bool operator==(const Rejected&) const = default;
};

// The stream goes on, but its values are probably wrong. Only over WebSocket.
struct Warned {
  std::string code;
  std::string message;
  bool operator==(const Warned&) const = default;
};

// The service will end the stream soon; come again after that time.
struct Goaway {
  std::chrono::milliseconds retry_after{};
  bool operator==(const Goaway&) const = default;
};

// The last, after every result.
struct Closed {
  std::uint64_t frames = 0;  // gaps not counted
  std::uint64_t chunks = 0;  // rows with frames
  bool operator==(const Closed&) const = default;
};

}  // namespace client_event

using ClientEvent = std::variant<client_event::Opened, client_event::Result, client_event::Flushed,
                                 client_event::Rejected, client_event::Warned, client_event::Goaway,
                                 client_event::Closed>;

}  // namespace millrace
