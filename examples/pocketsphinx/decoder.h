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

// What a decoder believes was said. The score is the search's: log probability, only to be compared
// with one of the same audio.
struct Hypothesis {
  std::string text;
  std::int32_t score = 0;
  bool operator==(const Hypothesis&) const = default;
};

// Rate of the model, in mono samples per second.
inline constexpr int sample_rate = 16000;

// Where Debian's pocketsphinx-en-us lies.
inline constexpr const char* default_model = "/usr/share/pocketsphinx/model/en-us";

// One PocketSphinx decoder with the US English model: audio of one stream in, utterance by
// utterance, words out. What it says does not depend on how an utterance is cut into pieces, bit
// for bit. From one utterance to the next it carries what it learned of the channel: cepstral mean,
// noise level, the last frames. After reset() it equals a new one, bit for bit.
// It takes 0.2 s to load and 90 MB, and shares nothing with other decoders.
// Confined to one thread.
class Decoder {
 public:
  // Throws std::runtime_error if there is no such model.
  explicit Decoder(const std::filesystem::path& model = default_model);

  // Starts an utterance; one that is open is dropped.
  void begin();
  // Requires: open().
  void process(std::span<const std::int16_t> samples);
  // What was said so far in this utterance.
  Hypothesis partial() const;
  // Ends the utterance with the second pass of the search (0.06 of its length) and says what it
  // was. Requires: open().
  Hypothesis end();

  // Forgets everything but the model. An open utterance is dropped.
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
