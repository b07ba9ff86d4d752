// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "input/sample_format.h"

namespace millrace {

// Turns one client's bytes into frames of the pipeline, message by message, each in as many
// pieces as the place for it has:
//
//   while (there is room and whole_frames(message.size()) > 0) convert(message, room);
//   if (!finish(message).finite) drop what the message gave
//
// Messages may be split anywhere, also inside a value. A frame counts to the message that
// completes it. What finish() refuses does not disturb where the next frame begins.
//
// s16 stands for 1/32768 of a float. A denormal becomes zero; a value beyond what the pipeline
// keeps becomes the nearest that it can keep. Confined to one thread.
class FrameConverter {
 public:
  FrameConverter(SampleFormat from, const FrameType& to);

  // Frames that are complete with `bytes` more.
  std::size_t whole_frames(std::size_t bytes) const {
    return (partial_.size() + bytes) / client_frame_;
  }

  // Fills `room` with the next frames and takes their bytes off the front of `message`.
  // Requires: room is whole frames, at most whole_frames(message.size()).
  void convert(Bytes& message, MutableBytes room);

  // What came to light while a message was converted.
  struct Findings {
    bool finite = true;         // no value is NaN or infinite
    std::uint64_t clamped = 0;  // values beyond the range of the pipeline's
  };

  // The message ends: `rest`, which is less than a frame, is kept.
  [[nodiscard]] Findings finish(Bytes rest);

  // A frame has begun and is not whole.
  bool has_partial() const { return !partial_.empty(); }
  void drop_partial() { partial_.clear(); }

  // Converts so many values.
  using Kernel = Findings (*)(const std::byte* from, std::byte* to, std::size_t values);

 private:
  void convert_frames(Bytes from, MutableBytes to);

  const Kernel kernel_;
  const std::size_t value_;           // bytes of one that the client sends
  const std::size_t client_frame_;    // bytes
  const std::size_t pipeline_frame_;  // bytes
  std::vector<std::byte> partial_;    // less than a frame
  Findings message_;                  // so far
};

}  // namespace millrace
