// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "training/catalogs/frames/frame_source.h"
#include "training/catalogs/frames/stored_file.h"

namespace millrace::training {

// The frames of a WAV file of 16-bit PCM, as they are or converted to another type.
class PcmFrames final : public FrameSource {
 public:
  static Result<std::unique_ptr<FrameSource>, ReadError> open(const AudioStream& stream);

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override;
  std::size_t memory() const override { return block_.memory() + converted_.capacity(); }
  bool is_current() override { return file_.is_current(); }
  std::size_t descriptors() const override { return 0; }  // StoredFile has a limit of its own
  void put_away() override;

 private:
  PcmFrames(const AudioStream& stream, StoredFile file);
  const AudioStream stream_;
  StoredFile file_;
  StoredFile::Block block_;
  std::vector<std::byte> converted_;
};

}  // namespace millrace::training
