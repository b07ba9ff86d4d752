// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "base/answer.h"
#include "chunker/row.h"

namespace millrace {

// The events of a stream that a client receives (docs/protocol.md). They are the same over each
// transport. Result, Message, Flushed and Closed arrive in the order of the stream; Rejected,
// Warned, Goaway and Resumed may arrive before earlier results. Values: they own their data.
namespace client_event {

// The first event: the service has opened the stream.
struct Opened {
  std::string stream;  // its name
  std::string pipeline;
  std::uint64_t frames = 0;  // position of the first frame to send
  bool operator==(const Opened&) const = default;
};

// A worker's answer to a row.
struct Result {
  std::uint64_t seq = 0;             // number of the row
  std::uint64_t begin = 0, end = 0;  // position of the row's body, in frames of the pipeline
  double begin_s = 0, end_s = 0;     // the same in seconds
  std::uint8_t flags = 0;            // bits of chunker/row.h, such as flag::last
  // Never Kind::none. The data of
  // - json: the value as the worker wrote it;
  // - text: a string, also if the worker wrote it as a JSON string;
  // - bytes: the worker's bytes;
  // - error: a code, "worker_failed" or "too_long".
  Answer answer;
  // The time of the row in each stage, a JSON object (docs/protocol.md). Empty if the stream was
  // opened without `explain`, and for an answer in bytes.
  std::string explain{};
  bool operator==(const Result&) const = default;
};

// A message of the worker, which does not answer a row.
struct Message {
  std::uint64_t number = 0;  // counts the messages of the stream, from 0
  std::uint64_t seq = 0;     // number of the newest row that the worker had
  Answer message;            // json, text or bytes, as in Result
  bool operator==(const Message&) const = default;
};

// The last row of the segment that the flush with this mark ended is done.
struct Flushed {
  std::uint64_t mark = 0;
  bool operator==(const Flushed&) const = default;
};

// The service refused a message; its frames count as a gap. The stream continues.
struct Rejected {
  std::string code;
  std::string message;
  std::uint64_t frames = 0;  // length of the gap, in frames of the pipeline
  bool operator==(const Rejected&) const = default;
};

// The values of the stream are probably wrong. The stream continues. Only over WebSocket.
struct Warned {
  std::string code;
  std::string message;
  bool operator==(const Warned&) const = default;
};

// The service will end the stream soon. Open a new one after this time.
struct Goaway {
  std::chrono::milliseconds retry_after{};
  bool operator==(const Goaway&) const = default;
};

// The connection was lost, and the stream continues over another one, without a loss.
struct Resumed {
  // False: the service had no longer the stream, and has opened it anew. The model has lost its
  // state.
  bool kept = true;
  bool operator==(const Resumed&) const = default;
};

// The last event, after every result: the totals of the stream.
struct Closed {
  std::uint64_t frames = 0;  // without gaps
  std::uint64_t chunks = 0;  // rows with frames
  bool operator==(const Closed&) const = default;
};

}  // namespace client_event

using ClientEvent =
    std::variant<client_event::Opened, client_event::Result, client_event::Message,
                 client_event::Flushed, client_event::Rejected, client_event::Warned,
                 client_event::Goaway, client_event::Resumed, client_event::Closed>;

}  // namespace millrace
