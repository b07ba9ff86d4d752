// SPDX-License-Identifier: Apache-2.0
#include "training/filling/streams/finite_frames.h"

#include <cstddef>
#include <string>

#include "gpu/host/convert.h"

namespace millrace::training {

std::optional<std::uint64_t> first_not_finite(const FrameType& type, Bytes frames) {
  if (all_finite(type.element, frames)) return std::nullopt;
  const std::size_t frame = type.bytes();
  std::uint64_t first = 0;
  while (all_finite(type.element, frames.subspan(first * frame, frame))) ++first;
  return first;
}

ReadError not_finite(const FrameReader& stream, std::uint64_t frame) {
  const std::string file = stream.file();
  return {.fault = DataFault::format,
          .message = (file.empty() ? "" : file + ": ") + "a value of frame " +
                     std::to_string(frame) + " is NaN or infinite"};
}

}  // namespace millrace::training
