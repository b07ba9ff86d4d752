// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/utterances.h"

#include <cmath>
#include <exception>

#include "chunker/row.h"
#include "schemas/json_text.h"

namespace millrace::pocketsphinx {
namespace {

// Whole milliseconds, in seconds.
double rounded(double seconds) { return std::round(1000 * seconds) / 1000; }

// `begin` is that of the utterance, in seconds of the stream.
Answer transcript(const Hypothesis& said, double begin, bool final) {
  std::string json = R"({"text":)";
  append_string(json, said.text);
  if (final) json += R"(,"final":true)";
  json += R"(,"words":[)";
  for (const Word& word : said.words) {
    if (&word != &said.words.front()) json += ',';
    append_string(json += R"({"word":)", word.word);
    append_number(json += R"(,"start":)", rounded(begin + word.start));
    append_number(json += R"(,"end":)", rounded(begin + word.end));
    json += '}';
  }
  json += ']';
  if (final) json += R"(,"score":)" + std::to_string(said.score);
  return {Answer::Kind::json, json + '}'};
}

}  // namespace

Answer Utterances::take(const SpokenRow& row) {
  try {
    return decode(row);
  } catch (const std::exception& error) {
    return {Answer::Kind::error, error.what()};
  }
}

Answer Utterances::decode(const SpokenRow& row) {
  const auto is = [&](std::uint8_t markers) { return (row.flags & markers) != 0; };
  if (is(flag::abort)) return {};  // RESET of the next stream drops the open utterance
  if (is(flag::reset)) decoder_->reset();
  const bool speaks = !row.samples.empty() || is(flag::last);
  if (is(flag::reset | flag::segment) || (speaks && !decoder_->open())) begin(row);
  if (!row.samples.empty()) decoder_->process(row.samples);
  if (is(flag::last)) return transcript(decoder_->end(), begin_, true);
  if (row.samples.empty()) return {};
  return transcript(decoder_->partial(), begin_, false);
}

void Utterances::begin(const SpokenRow& row) {
  decoder_->begin();
  begin_ = static_cast<double>(row.begin) / sample_rate;
}

}  // namespace millrace::pocketsphinx
