// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/result_head.h"

namespace millrace {

// The messages between a client and the service (client.fbs, docs/protocol.md), as plain structs.
// Text and bytes are views: of the sender's data, or of the decoded message. `stream` is the number
// that the client has chosen for a stream; 0 over WebSocket.
namespace client_protocol {

inline constexpr std::uint32_t version = 1;
// The limit of marks and counts: the largest integer that every JSON reader keeps exactly.
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
  std::optional<MessageNumber> number{};  // for a client that resumes
};

struct Ready {
  std::uint32_t version = client_protocol::version;
  std::uint64_t stream = 0;
  std::string_view id;
  std::string_view pipeline;
  std::uint64_t frames = 0;       // position of the first frame to send
  std::uint32_t frame_bytes = 0;  // bytes of one frame of the client; 0: not given
  std::uint64_t commands = 0;     // number of the client's commands that have arrived
  std::uint64_t keep = 0;         // for a client that resumes: the most frames to keep
  std::string_view resume{};      // the token that continues the stream, a secret; or empty
  std::optional<bool> resumed{};  // the client has shown a token: true if the stream was kept
};

struct Flushed {
  std::uint64_t stream = 0;
  std::uint64_t mark = 0;
  std::optional<std::uint64_t> n{};  // here and below: for a client that resumes
  std::uint64_t seq = 0;             // with `n`: the row whose segment the flush ended
};

struct Rejected {
  std::uint64_t stream = 0;
  std::string_view code;
  std::string_view message;
  std::uint64_t frames = 0;  // length of the gap, in frames of the pipeline
  std::optional<std::uint64_t> n{};
};

struct Error {
  std::optional<std::uint64_t> stream;  // nullopt: concerns the connection
  std::string_view code;
  std::string_view message;
  std::string_view parameter{};  // the one of Open at fault, or empty
  std::optional<std::chrono::milliseconds> retry_after{};
  std::optional<std::uint64_t> n{};
};

struct Closed {
  std::uint64_t stream = 0;
  std::uint64_t frames = 0;  // without gaps
  std::uint64_t chunks = 0;  // rows with frames
  std::optional<std::uint64_t> n{};
};

struct Credit {
  std::uint64_t stream = 0;
  std::uint64_t frames = 0;  // additional frames of the client
};

struct Goaway {
  std::uint64_t stream = 0;
  std::chrono::milliseconds retry_after{};
};

struct Message {
  std::uint64_t stream = 0;
  std::uint64_t number = 0;                 // counts the messages of the stream, from 0
  std::uint64_t seq = 0;                    // number of the newest row that the worker had
  Answer::Kind kind = Answer::Kind::bytes;  // json, text or bytes
  Bytes data{};
  std::optional<std::uint64_t> n{};
};

// The place before which a client that resumes need not keep anything.
struct Ack {
  std::uint64_t stream = 0;
  ResumePoint place{};
};

// client -> service

// The parameters of a new stream. The decoder does not check them: the transport does.
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
  std::optional<std::string_view> record{};
  std::optional<std::string_view> token{};  // a secret: neither logged nor part of an error
  bool resume = false;
  // The stream that the client continues, and what it has: see Resumption.
  std::optional<std::string_view> resume_token{};  // a secret, too
  std::optional<std::uint64_t> n{};
  std::optional<ResumePoint> place{};
  std::optional<std::uint64_t> have{};
  std::optional<std::uint64_t> flushed{};
  std::optional<std::string_view> set{};
};

struct Frames {
  std::uint64_t stream = 0;
  std::uint64_t at = 0;  // position of the first frame, in frames of the client; not checked
  Bytes bytes;           // whole frames, not checked; empty: a keepalive
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
  std::uint64_t frames = 1;  // frames of the client; 1 ... max_number
};

struct End {
  std::uint64_t stream = 0;
};

// The text of both may be anything when it is read: a wrong one is the fault of one stream.
struct Post {
  std::uint64_t stream = 0;
  std::string_view data;  // a JSON value
};

struct SetOptions {
  std::uint64_t stream = 0;
  std::string_view options;  // a JSON object
};

// From a client that resumes: it has all messages before number `n`.
struct Received {
  std::uint64_t stream = 0;
  std::uint64_t n = 0;  // at most max_number
};

using ToClient =
    std::variant<Result, Ready, Flushed, Rejected, Error, Closed, Credit, Goaway, Message, Ack>;
using ToService = std::variant<Open, Frames, Flush, Reset, Gap, End, Post, SetOptions, Received>;

}  // namespace client_protocol
}  // namespace millrace
