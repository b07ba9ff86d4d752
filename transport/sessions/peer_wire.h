// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace millrace {

// The way to one peer of a socket that carries messages. Confined to one thread.
class PeerWire {
 public:
  virtual ~PeerWire() = default;

  // The peer's address, "127.0.0.1:40000"; empty if the connection is gone.
  virtual std::string address() const = 0;

  enum class Sent : std::uint8_t {
    taken,
    full,  // nothing was taken: the peer has to read first
    gone,  // nobody is there
  };
  [[nodiscard]] virtual Sent send(Bytes message) = 0;

  // Bytes of the connection that the peer's host has acknowledged so far: while messages wait and
  // this stays the same, the peer takes nothing.
  virtual std::uint64_t acknowledged() const = 0;
  // All that send() took has left this process.
  virtual bool empty() const = 0;

  // Something waits to be sent: ClientPeer::flush is wanted, later than within this call.
  virtual void wake() = 0;

  // The connection ends, with what was not brought out yet.
  virtual void cut() = 0;
};

}  // namespace millrace
