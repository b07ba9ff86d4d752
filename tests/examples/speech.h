// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/parse.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/answer.h"
#include "examples/pocketsphinx/audio_file.h"
#include "examples/pocketsphinx/decoder.h"
#include "examples/pocketsphinx/utterances.h"

namespace millrace::pocketsphinx {

// An utterance of Debian's pocketsphinx-testdata by its number: 3 s are "0880" ("he was not an ill
// disposed young man") and "0930".
inline std::vector<std::int16_t> librivox(const std::string& number) {
  return read_audio(
      "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-" + number +
      ".wav");
}

inline void feed(Decoder& decoder, Samples samples, std::size_t piece = 1600) {
  for (; samples.size() > piece; samples = samples.subspan(piece))
    decoder.process(samples.first(piece));
  decoder.process(samples);
}

inline Hypothesis decode(Decoder& decoder, Samples samples, std::size_t piece = 1600) {
  decoder.begin();
  feed(decoder, samples, piece);
  return decoder.end();
}

inline std::string final_of(const Hypothesis& said) {
  return said.text + " (" + std::to_string(said.score) + ")";
}
// The same of a final transcript; of another answer, its data.
inline std::string final_of(const Answer& answer) {
  if (answer.kind != Answer::Kind::json) return answer.data;
  const auto transcript = boost::json::parse(answer.data).as_object();
  if (!transcript.contains("final")) return answer.data;
  return final_of({.text = transcript.at("text").as_string().c_str(),
                   .score = transcript.at("score").to_number<std::int32_t>()});
}

}  // namespace millrace::pocketsphinx
