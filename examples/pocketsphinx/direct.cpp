// SPDX-License-Identifier: Apache-2.0
// Decodes audio files without Millrace, and prints one JSON line per file:
// {"file":"a.wav","text":"…","score":-11892}.
#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "examples/pocketsphinx/audio_file.h"
#include "examples/pocketsphinx/decoder.h"

namespace {

using millrace::pocketsphinx::Decoder;

constexpr std::size_t piece = 1600;  // samples per call of the decoder: a chunk of the demo

boost::json::object decode(Decoder& decoder, std::span<const std::int16_t> samples) {
  decoder.begin();
  for (; !samples.empty(); samples = samples.subspan(std::min(piece, samples.size())))
    decoder.process(samples.first(std::min(piece, samples.size())));
  const auto hypothesis = decoder.end();
  return {{"text", hypothesis.text}, {"score", hypothesis.score}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> files(argv + 1, argv + argc);
  const bool one_stream = !files.empty() && files.front() == "--stream";
  if (one_stream) files.erase(files.begin());
  if (files.empty() || files.front().starts_with('-')) {
    std::cerr << "usage: pocketsphinx_direct [--stream] FILE...\n"
                 "Decodes each FILE (audio, mono, 16 kHz) as one utterance, without Millrace.\n"
                 "  --stream  the files are the utterances of one stream, without resets\n";
    return 2;
  }
  Decoder decoder(millrace::pocketsphinx::default_model);
  for (const auto& file : files) {
    boost::json::object line{{"file", file}};
    if (!one_stream) decoder.reset();
    const auto samples = millrace::pocketsphinx::read_audio(file);
    for (const auto& [key, value] : decode(decoder, samples)) line[key] = value;
    std::cout << boost::json::serialize(line) << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << "pocketsphinx_direct: " << error.what() << '\n';
  return 1;
}
