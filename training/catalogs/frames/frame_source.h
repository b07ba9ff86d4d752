// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The frames of one audio file, with the values that a catalog wants. Confined to one thread.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // As FrameReader::frames(): the errors name the file.
  virtual Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) = 0;
  // Memory that it keeps, in bytes, without mapped files.
  virtual std::size_t memory() const = 0;
  // False if its file was changed, replaced or deleted, as far as that is known.
  virtual bool is_current() = 0;
  // It is not read for some time: forgets what it can read again at once.
  virtual void put_away() {}
  // File descriptors that it keeps, except those of a StoredFile.
  virtual std::size_t descriptors() const = 0;
};

// An audio file that is to be read: its place and its frames.
struct AudioStream {
  std::string path;
  std::uint64_t frames = 0;
  std::uint32_t channels = 1;
  std::uint64_t place = 0;  // as IndexedStream::place
  Element element = Element::s16;
  bool mapped = false;  // as StoredFile::open()
  // The stream is a part of the file: frames of the file before it and behind it.
  std::uint64_t before = 0, behind = 0;
  // The rate or the channels of the part are converted.
  struct Conversion {
    double rate = 0;  // after it
    double from_rate = 0;
    std::uint32_t from_channels = 1;
    std::uint64_t from_frames = 0;  // frames of the part in the file
  };
  std::optional<Conversion> conversion{};
};

// The error is for a file that is missing or shorter.
Result<std::unique_ptr<FrameSource>, ReadError> open_frames(const AudioStream& stream);

}  // namespace millrace::training
