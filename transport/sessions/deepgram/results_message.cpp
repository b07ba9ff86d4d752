// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/deepgram/results_message.h"

#include <algorithm>
#include <cmath>

#include "schemas/json_text.h"

namespace millrace {
namespace {

void append_member(std::string& out, std::string_view name, bool value) {
  out.append(",\"").append(name).append(value ? "\":true" : "\":false");
}

double confidence_of(const TranscriptWord& word) {
  return std::clamp(word.confidence.value_or(1), 0.0, 1.0);
}

double confidence_of(const Transcript& transcript) {
  if (transcript.text.empty()) return 0;
  if (transcript.words.empty()) return 1;
  double sum = 0;
  for (const TranscriptWord& word : transcript.words) sum += confidence_of(word);
  return sum / static_cast<double>(transcript.words.size());
}

void append_word(std::string& out, const TranscriptWord& word) {
  append_string(out += R"({"word":)", word.word);
  append_seconds(out += R"(,"start":)", word.start);
  append_seconds(out += R"(,"end":)", word.end);
  append_number(out += R"(,"confidence":)", confidence_of(word));
  append_string(out += R"(,"punctuated_word":)", word.word);
  out += '}';
}

}  // namespace

void append_seconds(std::string& out, double seconds) {
  const double rounded = std::round(seconds * 1e6) / 1e6;
  append_number(out, std::isfinite(rounded) ? rounded : 0);
}

void append_results(std::string& out, const ResultsHead& head, const Transcript& transcript,
                    std::string_view metadata) {
  append_seconds(out += R"({"type":"Results","channel_index":[0,1],"start":)", head.start);
  append_seconds(out += R"(,"duration":)", std::max(0.0, head.end - head.start));
  append_member(out, "is_final", head.is_final);
  append_member(out, "speech_final", head.speech_final);
  append_member(out, "from_finalize", head.from_finalize);
  append_string(out += R"(,"channel":{"alternatives":[{"transcript":)", transcript.text);
  append_number(out += R"(,"confidence":)", confidence_of(transcript));
  out += R"(,"words":[)";
  for (const TranscriptWord& word : transcript.words)
    append_word(out += out.back() == '[' ? "" : ",", word);
  out.append(R"(]}]},"metadata":)").append(metadata) += '}';
}

}  // namespace millrace
