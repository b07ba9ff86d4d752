// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/result_head.h"

namespace millrace {

// The text messages from the service to a client (docs/protocol.md), for both ends. Writing
// appends to a string that is used again.

void append_ready(std::string& out, std::string_view stream, std::string_view pipeline,
                  std::uint64_t frames);
// Of an answer that is json, text or error.
void append_result(std::string& out, const ResultHead& head, const Answer& answer);
// In the place of one that is longer than a message may be.
void append_too_long(std::string& out, const ResultHead& head);
void append_flushed(std::string& out, std::uint64_t mark);
void append_rejected(std::string& out, ErrorCode code, std::string_view message,
                     std::uint64_t frames);
void append_warning(std::string& out, ErrorCode code, std::string_view message);
void append_error(std::string& out, ErrorCode code, std::string_view message);
void append_goaway(std::string& out, std::chrono::milliseconds retry_after);
void append_closed(std::string& out, std::uint64_t frames, std::uint64_t chunks);

// What a client reads of a message. `data` and `explain` are views of the message's text.
struct ServerMessage {
  enum class Type : std::uint8_t {
    unknown,  // of a later version: to be ignored
    ready,
    result,
    flushed,
    rejected,
    warning,
    error,
    goaway,
    closed,
  };

  Type type = Type::unknown;
  std::string stream;                       // ready
  std::string pipeline;                     // ready
  std::string code;                         // rejected, warning, error
  std::string message;                      // rejected, warning, error
  std::uint64_t seq = 0;                    // result
  std::uint64_t begin = 0;                  // result
  std::uint64_t end = 0;                    // result
  double begin_s = 0;                       // result
  double end_s = 0;                         // result
  std::uint8_t flags = 0;                   // result; as in ResultHead
  Answer::Kind kind = Answer::Kind::none;   // result: json, text, error; none: it has no answer
  std::string_view data;                    // result: the JSON value as it was written
  std::string text;                         // result: of an answer that is a string; of an error
  std::string_view explain;                 // result: a JSON object; empty if it has none
  std::uint64_t frames = 0;                 // ready, rejected, closed
  std::uint64_t chunks = 0;                 // closed
  std::uint64_t mark = 0;                   // flushed
  std::chrono::milliseconds retry_after{};  // goaway
};

// Nothing for what is no message of the protocol.
std::optional<ServerMessage> parse_server_message(std::string_view text);

}  // namespace millrace
