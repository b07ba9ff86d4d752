// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recording/reader/recordings.h"

namespace millrace::recordings {

using recording::RecordedStream;
using recording::Recordings;

// The streams that a command is about.
struct Filter {
  std::string pipeline{};  // empty: of all pipelines
  std::string name{};      // empty: with any name
  // Opened at `since` or later, and before `until`. In nanoseconds since 1970.
  std::optional<std::int64_t> since{}, until{};

  bool accepts(const RecordedStream& stream) const;
};

// The streams by the time when they were opened, then by number. They refer to `recordings`, until
// its next refresh().
std::vector<const RecordedStream*> select(Recordings& recordings, const Filter& filter);

// The streams with this number, or else with this name, by number. The error is a sentence.
Result<std::vector<RecordedStream>, std::string> streams_named(Recordings& recordings,
                                                               const std::string& number_or_name);
// The one stream; an error lists the numbers if several streams have the name.
Result<RecordedStream, std::string> stream_named(Recordings& recordings,
                                                 const std::string& number_or_name);

// A stream's number as text; nullopt if the text is not one.
std::optional<std::uint64_t> stream_number(std::string_view text);

}  // namespace millrace::recordings
