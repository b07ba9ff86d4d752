// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// A worker's answer to one row. Checked on receipt: `json` is JSON, `text` is UTF-8. `pending` is
// only between a worker and its lane: the row is done when its answer follows.
struct Answer {
  enum class Kind : std::uint8_t {
    none,     // no answer: the row is done, and the client receives no result
    json,     // data is a JSON value
    text,     // data is UTF-8; the client gets it as a JSON string
    bytes,    // data is opaque; the client gets a binary message
    error,    // the row failed; data is the reason, for the log only
    pending,  // the answer follows; no data
  };

  Kind kind = Kind::none;
  std::string data = {};
  bool endpoint = false;  // the segment of the row ends here; any kind of answer may have it
  bool operator==(const Answer&) const = default;
};

}  // namespace millrace
