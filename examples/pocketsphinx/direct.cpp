// SPDX-License-Identifier: Apache-2.0
// What the decoder makes of audio files when nothing stands between: one JSON line per file,
// {"file":"a.wav","final":"…","score":-11892}.
#include <CLI/CLI.hpp>
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

boost::json::object decode(Decoder& decoder, std::span<const std::int16_t> samples,
                           std::size_t piece) {
  decoder.reset();
  decoder.begin();
  for (; !samples.empty(); samples = samples.subspan(std::min(piece, samples.size())))
    decoder.process(samples.first(std::min(piece, samples.size())));
  const auto said = decoder.end();
  return {{"final", said.text}, {"score", said.score}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> files;
  std::size_t piece = 1600;
  std::string model = millrace::pocketsphinx::default_model;
  CLI::App app("Decodes each FILE as one utterance, without Millrace.");
  app.add_option("FILE", files, "audio, mono, 16 kHz")->required();
  app.add_option("--piece", piece, "samples given to the decoder at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--model", model, "folder of the model")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  Decoder decoder(model);
  for (const auto& file : files) {
    boost::json::object line{{"file", file}};
    const auto samples = millrace::pocketsphinx::read_audio(file);
    for (const auto& [key, value] : decode(decoder, samples, piece)) line[key] = value;
    std::cout << boost::json::serialize(line) << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << "pocketsphinx_direct: " << error.what() << '\n';
  return 1;
}
