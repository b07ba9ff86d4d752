// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/answer.h"
#include "examples/pocketsphinx/decoder.h"

namespace millrace::pocketsphinx {

using Samples = std::span<const std::int16_t>;

// A row as a decoder needs it: markers (chunker/row.h) and the samples of its body, none in a
// marker row.
struct SpokenRow {
  std::uint8_t flags = 0;
  Samples samples;
};

// Turns the rows of one slot into utterances of its decoder, and those into answers:
//   {"partial":"…"}              to a row with samples: what was said so far in this utterance;
//   {"final":"…","score":-11892} to the row with LAST: what was said in it;
//   none                         to other marker rows and to ABORT.
// An utterance begins at SEGMENT or RESET; one that is open then is dropped. RESET also resets the
// decoder.
// Confined to one thread.
class Utterances {
 public:
  explicit Utterances(std::unique_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {}

  // Answer::Kind::error where the decoder fails.
  Answer take(const SpokenRow& row);

  // The decoder, for another stream, whose first row resets it.
  std::unique_ptr<Decoder> release() && { return std::move(decoder_); }

 private:
  Answer decode(const SpokenRow& row);

  std::unique_ptr<Decoder> decoder_;
};

}  // namespace millrace::pocketsphinx
