// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// A worker's answer as the text of a speech recogniser (docs/transcripts.md).
struct Transcript {
  std::string text{};
  bool final = false;
};

// `answer` is JSON. `is_last`: its row has LAST, which makes it final unless it says otherwise.
// nullopt: it is no transcript, which is an object with a string `text`. Pure.
std::optional<Transcript> parse_transcript(std::string_view answer, bool is_last);

}  // namespace millrace
