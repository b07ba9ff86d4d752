// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "recording/reader/recordings.h"
#include "recording/reader/stream_frames.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The frames of a recorded stream of one or several parts, which are read, and verified, when it is
// made. A source of IdleSources. Confined to the thread of its Recordings, which must outlive it.
class RecordedFrames {
 public:
  // The first IndexedPart::counted frames of each part. Throws std::runtime_error if the disk
  // fails.
  RecordedFrames(recording::Recordings& recordings, const FrameType& type,
                 std::span<const IndexedPart> parts);

  // A part does not have the frames of the index.
  struct Fault {
    std::uint64_t number = 0;  // StreamMeta::number
    std::string reason{};
    bool unreadable = false;  // it has no frame
  };
  // nullopt: all parts have them.
  const std::optional<Fault>& fault() const { return fault_; }

  // The frames [begin, begin + count), valid until the next call.
  Bytes read(std::uint64_t begin, std::uint64_t count);

  static bool is_current() { return true; }
  static void put_away() {}
  static std::size_t descriptors() { return 0; }  // those of the recordings
  std::size_t memory() const;

 private:
  struct Part {
    std::unique_ptr<recording::StreamFrames> frames;
    std::uint64_t begin = 0, end = 0;  // in the stream
  };

  std::vector<Part> parts_;
  std::optional<Fault> fault_;
  std::vector<std::byte> slices_;  // frames that lie in several slices
  std::vector<std::byte> copy_;    // frames that lie in several parts
};

}  // namespace millrace::training
