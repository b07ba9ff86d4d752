// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/answer.h"
#include "base/bytes.h"

namespace millrace {

// The messages between a client and the service (client.fbs, docs/protocol.md), as plain structs.
// Text and bytes are views: of what the sender keeps, or of the message that was decoded. `stream`
// is the client's number for a stream; 0 over WebSocket.
namespace client_protocol {

inline constexpr std::uint32_t version = 1;
// What every JSON reader keeps exactly; of positions, marks and counts.
inline constexpr std::uint64_t max_number = (std::uint64_t{1} << 53) - 1;

// service -> client

struct Result {
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;  // frames of the pipeline
  double begin_s = 0, end_s = 0;
  std::uint8_t flags = 0;                   // as in chunker/row.h
  Answer::Kind kind = Answer::Kind::bytes;  // never `none`
  Bytes data{};
};

struct Ready {
  std::uint32_t version = client_protocol::version;
  std::uint64_t stream = 0;
  std::string_view id;
  std::string_view pipeline;
  std::uint64_t frames = 0;       // the position to send from
  std::uint32_t frame_bytes = 0;  // of one frame of the client; 0: not said
};

struct Flushed {
  std::uint64_t stream = 0;
  std::uint64_t mark = 0;
};

struct Rejected {
  std::uint64_t stream = 0;
  std::string_view code;
  std::string_view message;
  std::uint64_t frames = 0;  // of the pipeline
};

struct Error {
  std::optional<std::uint64_t> stream;  // none: it is about the connection
  std::string_view code;
  std::string_view message;
  std::string_view parameter{};  // of Open; or empty
  std::optional<std::chrono::milliseconds> retry_after{};
};

struct Closed {
  std::uint64_t stream = 0;
  std::uint64_t frames = 0;  // gaps not counted
  std::uint64_t chunks = 0;
};

struct Credit {
  std::uint64_t stream = 0;
  std::uint64_t frames = 0;  // of the client, so many more
};

struct Goaway {
  std::uint64_t stream = 0;
  std::chrono::milliseconds retry_after{};
};

// client -> service

// Nothing of it but the numbers has been looked at: what a parameter may be is the door's to say.
struct Open {
  std::uint32_t version = client_protocol::version;
  std::uint64_t stream = 0;
  std::optional<std::string_view> pipeline{};
  std::optional<std::string_view> id{};
  std::optional<std::string_view> format{};
  std::optional<double> rate{};
  std::optional<std::uint32_t> channels{};
  std::optional<std::uint32_t> dim{};
  std::optional<std::string_view> channel{};
  std::optional<std::string_view> chunk{};
  std::optional<std::string_view> options{};
};

struct Frames {
  std::uint64_t stream = 0;
  std::uint64_t at = 0;  // frames of the client; any number
  Bytes bytes;           // any number of them
};

struct Flush {
  std::uint64_t stream = 0;
  std::optional<std::uint64_t> mark{};  // at most max_number
};

struct Reset {
  std::uint64_t stream = 0;
};

struct Gap {
  std::uint64_t stream = 0;
  std::uint64_t frames = 1;  // of the client; 1 ... max_number
};

struct End {
  std::uint64_t stream = 0;
};

using ToClient = std::variant<Result, Ready, Flushed, Rejected, Error, Closed, Credit, Goaway>;
using ToService = std::variant<Open, Frames, Flush, Reset, Gap, End>;

}  // namespace client_protocol
}  // namespace millrace
