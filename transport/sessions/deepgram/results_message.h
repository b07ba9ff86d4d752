// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "schemas/transcripts/transcript.h"

namespace millrace {

// The place of a text in its stream, in a message `Results` of Deepgram's protocol.
struct ResultsHead {
  double start = 0, end = 0;   // seconds of the stream
  bool is_final = false;       // the text of this part will not change
  bool speech_final = false;   // an endpoint ends it
  bool from_finalize = false;  // a `Finalize` of the client ends it
};

// Appends the message. `metadata` is the JSON of its member. Words without a confidence have 1, and
// so has a text without words; that of a text is the mean of its words, of an empty one 0.
// Pure.
void append_results(std::string& out, const ResultsHead& head, const Transcript& transcript,
                    std::string_view metadata);

// Appends a time in seconds, rounded to microseconds; 0 if it is out of range.
void append_seconds(std::string& out, double seconds);

}  // namespace millrace
