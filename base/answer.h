// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// What a worker says to one row. Whoever takes it from a worker has checked that it is what it
// calls itself.
struct Answer {
  enum class Kind : std::uint8_t {
    none,   // nothing: the row is done, the client hears nothing of it
    json,   // data is a JSON value
    text,   // data is UTF-8; the client gets it as a JSON string
    bytes,  // data is opaque; the client gets a binary message
    error,  // the row failed; data says why, for the log, never for the client
  };

  Kind kind = Kind::none;
  std::string data;
  bool operator==(const Answer&) const = default;
};

}  // namespace millrace
