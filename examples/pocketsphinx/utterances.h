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

// A row for a decoder: its markers (chunker/row.h), the samples of its body, empty in a marker row,
// and the position of its first sample in the stream.
struct SpokenRow {
  std::uint8_t flags = 0;
  Samples samples;
  std::uint64_t begin = 0;
};

// Decodes the rows of one slot as utterances. The answers are transcripts (docs/transcripts.md):
//   {"text":"…","words":[…]}                             to a row with samples: the text so far
//   {"text":"…","final":true,"words":[…],"score":-11892} to the row with LAST
//   Kind::none                                           to other marker rows and to ABORT
// An utterance begins at SEGMENT or RESET, which drops an open utterance. RESET also resets the
// decoder.
//
// Confined to one thread.
class Utterances {
 public:
  explicit Utterances(std::unique_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {}

  // Returns the answer to a row; Answer::Kind::error if the decoder fails.
  Answer take(const SpokenRow& row);

  // Releases the decoder, for another stream; that stream's first row resets it.
  std::unique_ptr<Decoder> release() && { return std::move(decoder_); }

 private:
  Answer decode(const SpokenRow& row);
  void begin(const SpokenRow& row);

  std::unique_ptr<Decoder> decoder_;
  double begin_ = 0;  // seconds of the stream before the utterance
};

}  // namespace millrace::pocketsphinx
