// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/frame_type.h"
#include "base/result.h"

namespace millrace::pocketsphinx {

// Which columns of a row hold the frames that no row before it held: its body. A decoder keeps its
// own past, so that context is not for it.
// Immutable after construction.
class BodyColumns {
 public:
  // `chunk` is the pipeline's chunk rule, a JSON object. Says in a sentence what of the pipeline
  // does not fit the decoder.
  static Result<BodyColumns, std::string> of(const FrameType& frames, std::string_view chunk);

  // The body's first column in a row with `left` real frames before it.
  std::uint32_t begin(std::uint32_t left) const { return packed_ ? left : left_context_; }

 private:
  BodyColumns(bool packed, std::uint32_t left_context)
      : packed_(packed), left_context_(left_context) {}

  bool packed_;  // the window begins at column 0; otherwise the body's place is always the same
  std::uint32_t left_context_;
};

}  // namespace millrace::pocketsphinx
