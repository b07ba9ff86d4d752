// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "recording/reader/joined_reader.h"

namespace millrace {

// Makes the events of a stream that was lost and opened anew those of a stream that was not: each
// event of its client once, and frames that are missing at the place as a gap. Pure. Confined to
// one thread.
class Unbroken {
 public:
  // The next event of the reader. False: it is left out.
  bool take(recording::RecordedEvent& read, const recording::JoinedReader& reader);

 private:
  std::optional<std::uint64_t> position_;  // after the events so far; nullopt: there are none
};

}  // namespace millrace
