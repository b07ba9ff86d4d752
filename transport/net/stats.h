// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/error_code.h"
#include "base/stats.h"

namespace millrace {

// Why a client got no connection: the upgrade was answered with an HTTP error, or never came.
enum class Refusal : std::uint8_t {
  parameter,     // wrong, unknown or repeated; a name that is taken
  no_room,       // the pipeline has no free slot
  limit_global,  // as many connections as the process may have
  handshake,     // no WebSocket upgrade, or not in time
  draining,      // the service is stopping
  overload,      // it is short of memory
};

// Who or what ended a connection that was open.
enum class Closing : std::uint8_t {
  client,       // it closed, ended its stream, or vanished
  idle,         // no sign of it for too long
  protocol,     // what it sent is not the protocol
  too_big,      // a message over the limit
  policy,       // every other error that is told before the close, `no_worker` among them
  slow_reader,  // it did not read its results
  drain,        // the service is stopping
  internal,     // our fault
};

enum class MessageType : std::uint8_t { open, data, control, close };

// Why a message was refused while its stream goes on or is ended for it.
enum class MessageFault : std::uint8_t {
  verify,          // bytes that are no message
  schema,          // not a message of the protocol
  format,          // half a frame, or frames that the format cannot have
  size,            // longer than allowed
  nonfinite,       // NaN or infinity
  position,        // frames that were there already, or beyond the last position
  unknown_stream,  // of a stream that is not open
  rate_limit,      // beyond the credit, or commands that nobody takes
};

// How a message is counted that was refused with this word and cost so many frames; nothing where
// it is nobody's fault. Half a frame loses no whole one.
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

// What one io thread sees of the clients of one transport. That thread writes it.
struct DoorStats {
  Gauge connections;  // open, from the handshake on
  Counter opened;
  Labelled<Counter, Refusal> refused;
  Labelled<Counter, Closing> closed;
  Histogram handshake{buckets::io};  // TCP accept to upgrade answered

  Labelled<Counter, MessageType> messages;  // accepted; the upgrade is the `open`
  Labelled<Counter, MessageFault> rejected;
  Counter received;                  // bytes of payload, rejected ones too
  Histogram message{buckets::size};  // bytes of an accepted message
  Histogram parse{buckets::fast};    // to check one message

  Gauge paused;         // connections that are not read because what is behind them is full
  Counter paused_time;  // add(Duration), when the pause is over
  Gauge send_buffer;    // bytes that wait to be sent
};

// What a ZeroMQ socket sees of the connections behind it. The socket's thread writes it.
struct ZeromqStats {
  Gauge connections;                   // TCP connections, from the accept on
  Counter opened;                      // shook hands
  Labelled<Counter, Refusal> refused;  // limit_global; handshake: never heard
  Counter disconnected;                // of all that were accepted
  Counter malformed;                   // messages of more than one part, or without end
  Counter would_block;                 // sends that the peer had no room for
};

}  // namespace millrace
