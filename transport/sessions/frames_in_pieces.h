// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "streams/stream_input.h"

namespace millrace {

// A long message of frames on its way to its stream, in pieces (StreamInput::piece()): between two
// pieces the thread can do other work. Holds a copy of the rest. Confined to one thread.
class FramesInPieces {
 public:
  // Gives the first piece to the stream, which is all of a short message. Requires: empty().
  void begin(StreamInput& stream, Bytes message, Time arrived);
  // Gives the next piece. Requires: not empty().
  void proceed(StreamInput& stream);
  void clear() { std::vector<std::byte>().swap(rest_); }
  bool empty() const { return rest_.empty(); }
  std::size_t bytes() const { return rest_.size(); }  // memory of the rest

 private:
  void keep(Bytes rest, std::size_t piece, Time arrived);

  std::vector<std::byte> rest_;
  std::size_t at_ = 0;     // bytes of rest_ that the stream has
  std::size_t piece_ = 0;  // bytes
  Time arrived_{};
};

}  // namespace millrace
