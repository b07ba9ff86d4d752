// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "input/sample_format.h"
#include "input/value_kernels.h"

namespace millrace {

// Converts one client's bytes into frames of the pipeline, message by message. The frames of a
// message may go into several buffers:
//
//   while (whole_frames(message.size()) > 0) convert(message, buffer);
//   if (!finish(message).finite) drop the frames of this message
//
// Messages may be split anywhere, also inside a value. A frame belongs to the message that
// completes it. A message that is not finite does not change where the next frame begins.
//
// Confined to one thread.
class FrameConverter {
 public:
  FrameConverter(SampleFormat from, const FrameType& to);

  // The number of frames that `bytes` more bytes complete.
  std::size_t whole_frames(std::size_t bytes) const {
    return (partial_.size() + bytes) / client_frame_;
  }

  // Fills `to` with the next frames and removes their bytes from the front of `message`.
  // Requires: `to` holds whole frames, at most whole_frames(message.size()).
  void convert(Bytes& message, MutableBytes to);

  // Properties of the values of a message.
  struct Findings {
    bool finite = true;         // no value is NaN or infinite
    std::uint64_t clamped = 0;  // values outside the pipeline's range
  };

  // Ends the message. Keeps `rest`, which is less than a frame.
  [[nodiscard]] Findings finish(Bytes rest);

  // True if part of a frame has been received.
  bool has_partial() const { return !partial_.empty(); }
  void drop_partial() { partial_.clear(); }

 private:
  void convert_frames(Bytes from, MutableBytes to);

  const SampleFormat from_;
  const ValueKernel kernel_;
  const std::size_t value_;           // bytes per value of the client
  const std::size_t client_frame_;    // bytes
  const std::size_t pipeline_frame_;  // bytes
  std::vector<std::byte> partial_;    // less than a frame
  Findings message_;                  // so far
};

}  // namespace millrace
