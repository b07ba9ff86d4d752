// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "training/catalogs/frames/checked_mapping.h"
#include "training/catalogs/frames/frame_source.h"

namespace millrace::training {

// The frames of a WAV file of 16-bit PCM, read in place from mapped memory. Other types of frames
// are converted from there.
class MappedFrames final : public FrameSource {
 public:
  static Result<std::unique_ptr<FrameSource>, ReadError> open(const AudioStream& stream);

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override;
  std::size_t memory() const override { return converted_.capacity(); }
  bool is_current() override { return file_.check().has_value(); }
  std::size_t descriptors() const override { return 0; }

 private:
  MappedFrames(const AudioStream& stream, CheckedMapping file);
  const AudioStream stream_;
  CheckedMapping file_;
  std::vector<std::byte> converted_;
};

}  // namespace millrace::training
