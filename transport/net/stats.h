// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/error_code.h"
#include "base/stats.h"

namespace millrace {

// Why a connection, or a stream of a ZeroMQ connection, was refused.
enum class Refusal : std::uint8_t {
  parameter,        // wrong, unknown or repeated, or a name in use
  no_room,          // the pipeline has no free slot, or the peer has too many streams
  limit_global,     // a limit on the connections of the process is reached
  limit_address,    // a limit on the connections of the client's address is reached
  handshake,        // no valid handshake, or not in time
  draining,         // the service is stopping
  overload,         // the service is short of memory
  unauthenticated,  // no token, or one that is not accepted
  resume,           // a stream cannot be continued as the client asks
  limit_tenant,     // a limit of the client's tenant is reached
};

// Why an open connection ended.
enum class Closing : std::uint8_t {
  client,       // the client closed it, ended its stream, or disappeared
  idle,         // the client was silent for too long
  protocol,     // the client violated the protocol
  too_big,      // the client sent a message over the limit
  policy,       // any other error that is sent before the close, such as `no_worker`
  slow_reader,  // the client did not read its results
  drain,        // the service is stopping
  internal,     // an error in the service
};

// Why a connection ends with this error.
constexpr Closing closing_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::schema: return Closing::protocol;
    case ErrorCode::idle: return Closing::idle;
    case ErrorCode::slow_reader: return Closing::slow_reader;
    case ErrorCode::internal: return Closing::internal;
    default: return Closing::policy;
  }
}

enum class MessageType : std::uint8_t { open, data, control, close };

// Why a message was rejected. Its stream may continue or end.
enum class MessageFault : std::uint8_t {
  verify,          // not a valid FlatBuffer
  schema,          // not a message of the protocol
  format,          // a partial frame, or frames that the format cannot have
  size,            // longer than allowed
  nonfinite,       // NaN or infinity, or an Opus packet that cannot be decoded
  position,        // frames received before, or beyond the last position
  unknown_stream,  // for a stream that is not open
  rate_limit,      // frames beyond the credit, or too many commands
};

// The fault under which a message rejected with `code` and a loss of `frames` frames is counted;
// nullopt if `code` is not a fault of a message. A partial frame loses 0 frames, NaN or infinity at
// least 1.
constexpr std::optional<MessageFault> fault_of(ErrorCode code, std::uint64_t frames) {
  switch (code) {
    case ErrorCode::schema: return MessageFault::schema;
    case ErrorCode::format: return MessageFault::format;
    case ErrorCode::values: return frames == 0 ? MessageFault::format : MessageFault::nonfinite;
    case ErrorCode::too_long: return MessageFault::size;
    case ErrorCode::too_fast: return MessageFault::rate_limit;
    case ErrorCode::unknown_stream: return MessageFault::unknown_stream;
    default: return std::nullopt;
  }
}

// The metrics of one transport's clients on one io thread. Only that thread writes them.
struct TransportStats {
  Gauge connections;  // open, after the handshake
  Gauge waiting;      // the part of them without a stream
  Counter opened;
  Labelled<Counter, Refusal> refused;
  Labelled<Counter, Closing> closed;
  Histogram handshake{buckets::io};  // from the TCP accept to the answered upgrade

  Labelled<Counter, MessageType> messages;  // accepted; the upgrade is the `open`
  Labelled<Counter, MessageFault> rejected;
  Counter received;                  // payload bytes, including those of rejected messages
  Histogram message{buckets::size};  // bytes of an accepted message
  Histogram parse{buckets::fast};    // time to validate one message

  Gauge paused;         // connections that are not read, because of back-pressure
  Counter paused_time;  // add(Duration), when a pause ends
  Gauge send_buffer;    // unsent bytes
};

// The metrics of the connections of one ZeroMQ socket. Only the socket's thread writes them.
struct ZeromqStats {
  Gauge connections;                   // accepted TCP connections
  Counter opened;                      // connections that completed the handshake
  Labelled<Counter, Refusal> refused;  // connections refused before their first message
  Counter disconnected;                // ended connections, including refused ones
  Counter malformed;                   // messages of more than one part, or without an end
  Counter would_block;                 // messages that had to wait for their peer to read
};

}  // namespace millrace
