// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "commands/recorded/selection.h"
#include "recording/reader/stream_parts.h"

namespace millrace::recordings {

enum class ListForm { table, json_lines };

// The state of a stream: "open", "whole", or "not whole".
std::string_view state_of(const recording::RecordedStream& stream);
// A name as it is if that is one word of printable characters, otherwise as a JSON string.
void append_name(std::string& line, std::string_view name);
// The members of a stream that `ls --json` prints, without braces. `whole`: see RecordedStream.
void append_members(std::string& line, const recording::StreamParts& parts, bool whole);

// Prints the streams that the filter accepts, by the time when they were opened. A stream with
// several parts has one line, also if the filter accepts only one of them.
void list_streams(recording::Recordings& recordings, const Filter& filter, ListForm form,
                  std::ostream& out);

}  // namespace millrace::recordings
