// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace millrace {

// The connection to one peer, over which messages are sent. Confined to one thread.
class PeerWire {
 public:
  virtual ~PeerWire() = default;

  // The peer's address, "127.0.0.1:40000"; empty if the connection has ended.
  virtual std::string address() const = 0;

  enum class Sent : std::uint8_t {
    accepted,
    full,          // not accepted: the peer must read first
    disconnected,  // not accepted: the connection has ended
  };
  [[nodiscard]] virtual Sent send(Bytes message) = 0;

  // Bytes that the peer's host has acknowledged so far. If messages are unsent and this does not
  // change, the peer does not read.
  virtual std::uint64_t acknowledged() const = 0;
  // All accepted messages are written to the socket.
  virtual bool empty() const = 0;

  // Requests a call of ClientPeer::flush(), after this call has returned.
  virtual void wake() = 0;

  // Ends the connection and drops the unwritten messages.
  virtual void cut() = 0;
};

}  // namespace millrace
