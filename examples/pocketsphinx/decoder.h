// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ps_decoder_s;

namespace millrace::pocketsphinx {

// A word, and when it was spoken: in seconds from the begin of the utterance.
struct Word {
  std::string word;
  double start = 0, end = 0;
  bool operator==(const Word&) const = default;
};

// The text that a decoder has recognized. The score is the log probability of the search; it is
// comparable only for the same audio.
struct Hypothesis {
  std::string text;
  std::vector<Word> words{};
  std::int32_t score = 0;
  bool operator==(const Hypothesis&) const = default;
};

// Sample rate of the model in Hz, mono.
inline constexpr int sample_rate = 16000;

// Folder of Debian's pocketsphinx-en-us.
inline constexpr const char* default_model = "/usr/share/pocketsphinx/model/en-us";

// One PocketSphinx decoder with the US English model. It takes the audio of one stream, utterance
// by utterance, and returns words. Its results do not depend on how an utterance is cut into
// pieces, bit for bit. From one utterance to the next it keeps its adaptation to the channel:
// cepstral mean, noise level and the last frames. After reset() it equals a new decoder, bit for
// bit.
//
// It takes 0.2 s to load and 90 MB, and shares nothing with other decoders.
//
// Confined to one thread.
class Decoder {
 public:
  // Throws std::runtime_error if there is no such model.
  explicit Decoder(const std::filesystem::path& model = default_model);

  // Starts an utterance. An open utterance is dropped. Throws std::runtime_error.
  void begin();
  // Decodes samples of the utterance. Throws std::runtime_error. Requires: open().
  void process(std::span<const std::int16_t> samples);
  // The text of the utterance so far.
  Hypothesis partial() const;
  // Ends the utterance with the second pass of the search (0.06 of its length) and returns its
  // text. Throws std::runtime_error. Requires: open().
  Hypothesis end();

  // Clears everything but the model. An open utterance is dropped.
  void reset();

  bool open() const { return open_; }

 private:
  void drop();

  struct Free {
    void operator()(ps_decoder_s* decoder) const;
  };
  std::unique_ptr<ps_decoder_s, Free> decoder_;
  std::vector<float> initial_mean_;
  bool open_ = false;
};

}  // namespace millrace::pocketsphinx
