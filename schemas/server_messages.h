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

// The text messages from the service to a client (docs/protocol.md), for both ends.

// These append a message to a string, which can be reused.
void append_ready(std::string& out, const StreamReady& ready);
// Requires: the answer is `json`, valid JSON; `text`, valid UTF-8; or `error`.
void append_result(std::string& out, const ResultHead& head, const Answer& answer);
// A result with the error `too_long`, in place of an answer that is too long for a message.
void append_too_long(std::string& out, const ResultHead& head);
// Requires: the message is `json`, valid JSON, or `text`, valid UTF-8.
void append_message(std::string& out, const MessageHead& head, const Answer& message);
// `seq`: the row whose segment the flush ended, for a client that resumes.
void append_flushed(std::string& out, std::uint64_t mark, std::optional<std::uint64_t> seq = {});
void append_rejected(std::string& out, ErrorCode code, std::string_view message,
                     std::uint64_t frames);
void append_warning(std::string& out, ErrorCode code, std::string_view message);
void append_error(std::string& out, ErrorCode code, std::string_view message);
void append_goaway(std::string& out, std::chrono::milliseconds retry_after);
void append_closed(std::string& out, std::uint64_t frames, std::uint64_t chunks);
void append_ack(std::string& out, const ResumePoint& point);
// Adds its number to the message that `out` ends with.
void append_message_number(std::string& out, const MessageNumber& number);

// A message as a client reads it. The comment of a member names the types that have it. `data` and
// `explain` are views of the message's text.
struct ServerMessage {
  enum class Type : std::uint8_t {
    unknown,  // a type of a later version: ignore it
    ready,
    result,
    message,
    flushed,
    rejected,
    warning,
    error,
    goaway,
    closed,
    ack,
  };

  Type type = Type::unknown;
  std::string stream;        // ready
  std::string pipeline;      // ready
  std::string code;          // rejected, warning, error
  std::string message;       // rejected, warning, error
  std::uint64_t number = 0;  // message
  std::uint64_t seq = 0;     // result, message, flushed
  std::uint64_t begin = 0;   // result
  std::uint64_t end = 0;     // result
  double begin_s = 0;        // result
  double end_s = 0;          // result
  std::uint8_t flags = 0;    // result; bits as in ResultHead
  // result, message:
  Answer::Kind kind = Answer::Kind::none;   // json, text or error; none if it has no data
  std::string_view data;                    // the JSON value as it was written
  std::string text;                         // data that is a string, or the error
  std::string_view explain;                 // result: a JSON object, or empty
  std::uint64_t frames = 0;                 // ready, rejected, closed
  std::uint64_t chunks = 0;                 // closed
  std::uint64_t mark = 0;                   // flushed
  std::chrono::milliseconds retry_after{};  // goaway
  // For clients that resume:
  std::uint64_t commands = 0;        // ready
  std::uint64_t frame_bytes = 0;     // ready: bytes of one frame of the client
  std::uint64_t keep = 0;            // ready: frames of the client
  std::string resume;                // ready: the next token, or empty
  std::optional<bool> resumed;       // ready
  std::optional<std::uint64_t> n;    // the number of a message in the order of the stream
  std::optional<ResumePoint> point;  // result, ack
};

// Nullopt if `text` is not a JSON object. Missing and malformed members have their default values.
std::optional<ServerMessage> parse_server_message(std::string_view text);

}  // namespace millrace
