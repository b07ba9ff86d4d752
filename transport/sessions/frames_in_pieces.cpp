// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/frames_in_pieces.h"

#include <algorithm>

namespace millrace {

void FramesInPieces::begin(StreamInput& stream, Bytes message, Time arrived) {
  piece_ = stream.piece(message);
  const Bytes rest = message.subspan(piece_);
  rest_.assign(rest.begin(), rest.end());
  at_ = 0;
  arrived_ = arrived;
  stream.frames(message.first(piece_), arrived);
}

void FramesInPieces::proceed(StreamInput& stream) {
  const Bytes piece = Bytes(rest_).subspan(at_, std::min(piece_, rest_.size() - at_));
  at_ += piece.size();
  stream.frames(piece, arrived_);
  if (at_ == rest_.size()) clear();
}

}  // namespace millrace
