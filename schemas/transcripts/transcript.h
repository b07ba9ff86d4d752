// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/answer.h"

namespace millrace {

struct TranscriptWord {
  std::string word{};
  double start = 0, end = 0;  // seconds of the stream
  std::optional<double> confidence{};
};

// A worker's answer as the text of a speech recogniser (docs/transcripts.md): the text of its
// segment so far.
struct Transcript {
  std::string text{};
  std::size_t stable = 0;  // bytes of `text` that will not change any more
  bool final = false;
  std::vector<TranscriptWord> words{};
};

// `answer` is JSON. `is_last`: its row has LAST, which makes it final unless it says otherwise.
// nullopt: it is no transcript, which is an object with a string `text`. Words without a string and
// two times are left out. Pure.
std::optional<Transcript> parse_transcript(std::string_view answer, bool is_last);

// The same for an answer of any kind, for readers that know that the worker answers transcripts: a
// plain string is a text. Pure.
std::optional<Transcript> transcript_of(const Answer& answer, bool is_last);

}  // namespace millrace
