// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "load/streams/content.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// A stream of the load generator: its client, and the first of the client's packets that it sends.
struct LoadStreamId {
  std::uint32_t client = 0;
  std::uint64_t first = 0;
  auto operator<=>(const LoadStreamId&) const = default;
};

// The name of a stream in a run. parse_stream_name() is the inverse; the worker uses it to find the
// stream of a row. It returns nullopt for a name of another run.
std::string stream_name(std::string_view run, const LoadStreamId& stream);
std::optional<LoadStreamId> parse_stream_name(std::string_view run, std::string_view name);

// Writes the own worker's answer to the row of the stream that begins at frame `begin`, a JSON
// value. It is different for each row of a run.
void write_answer(std::string& out, const LoadStreamId& stream, std::uint64_t begin);

// The word that the own worker answers to a row as a transcript, and its inverse, which returns the
// row's body. A word is different for each row of a run, and has no spaces.
void write_word(std::string& out, const LoadStreamId& stream, std::uint64_t begin,
                std::uint64_t end);
struct RowWord {
  std::uint64_t begin = 0, end = 0;
};
std::optional<RowWord> parse_word(std::string_view word);
// The transcript of a row, with this word: JSON.
void write_transcript(std::string& out, const LoadStreamId& stream, std::uint64_t begin,
                      std::uint64_t end);

// The facts of a run that all its threads share.
struct RunFacts {
  const Schedule& schedule;
  const Content& content;
  std::string name;
  bool answered = false;       // the own worker answers each row
  bool transcribed = false;    // with write_transcript() instead of write_answer()
  std::uint32_t messages = 0;  // that the own worker sends for each row with frames
  std::uint64_t commit = 0;    // least number of packets between two commits; 0: no commits
};

}  // namespace millrace::load
