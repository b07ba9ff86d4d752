// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"

namespace millrace::recordings {

// The streams that the arguments of a command name. An argument is a name, also if it has only
// digits: callers choose names. A number is always given as one, with --number.
struct NamedStreams {
  std::vector<std::string> names{};  // several streams may have the same one
  std::vector<std::uint64_t> numbers{};

  bool empty() const { return names.empty() && numbers.empty(); }
};

// The streams that a command is about.
struct Filter {
  std::string pipeline{};  // empty: of all pipelines
  std::string tenant{};    // empty: of all tenants
  NamedStreams named{};    // empty: all
  // Opened at `since` or later, and before `until`. In nanoseconds since 1970.
  std::optional<std::int64_t> since{}, until{};

  bool accepts(const recording::RecordedStream& stream) const;
};

// The streams by the time when they were opened, then by number. They refer to `recordings`, until
// its next refresh().
std::vector<const recording::RecordedStream*> select(recording::Recordings& recordings,
                                                     const Filter& filter);

// The recordings of the named streams by number, with all parts of each. The error is a sentence
// that names what is not there, and has misnamed_numbers().
Result<std::vector<recording::RecordedStream>, std::string> find_with_parts(
    recording::Recordings& recordings, const NamedStreams& named, const std::string& command);
// The one stream; an error lists the numbers if there are several. It may have several parts.
Result<recording::StreamParts, std::string> find_stream(recording::Recordings& recordings,
                                                        const NamedStreams& named,
                                                        const std::string& command);

// If names are numbers, and no stream has them: a sentence with the line that selects the streams
// by number. `command` is the begin of that line. Empty otherwise.
std::string misnamed_numbers(recording::Recordings& recordings, const NamedStreams& named,
                             const std::string& command);

}  // namespace millrace::recordings
