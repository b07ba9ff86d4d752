// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/frames_in_pieces.h"

#include <algorithm>
#include <cassert>

namespace millrace {

void FramesInPieces::begin(StreamInput& stream, Bytes message, Time arrived) {
  assert(empty());
  const std::size_t piece = stream.piece(message);
  if (piece < message.size()) keep(message.subspan(piece), piece, arrived);
  stream.frames(message.first(piece), arrived);
}

void FramesInPieces::keep(Bytes rest, std::size_t piece, Time arrived) {
  rest_.assign(rest.begin(), rest.end());
  at_ = 0;
  piece_ = piece;
  arrived_ = arrived;
}

void FramesInPieces::proceed(StreamInput& stream) {
  const Bytes piece = Bytes(rest_).subspan(at_, std::min(piece_, rest_.size() - at_));
  at_ += piece.size();
  stream.frames(piece, arrived_);
  if (at_ == rest_.size()) clear();
}

}  // namespace millrace
