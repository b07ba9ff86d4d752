// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/result.h"
#include "input/audio_file.h"
#include "input/input_converter.h"

namespace millrace {

// Reads an audio file as frames of a pipeline: converts its rate and its channels as the service
// does for a client. If the pipeline has one channel and the file has several, these are averaged.
// Confined to one thread.
class FileFrames {
 public:
  // Returns an error if the channels of the file cannot become those of the pipeline. The error is
  // a sentence without the file's name.
  static Result<FileFrames, std::string> open(AudioFile file, const FrameType& frames);

  // The next frames of the file; empty at its end. Valid until the next call.
  Result<Bytes, std::string> read();

 private:
  // The frames of one read.
  class Block final : public FrameSink {
   public:
    explicit Block(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}
    MutableBytes writable(std::size_t frames) override;
    void append(std::size_t frames) override { bytes_ += frames * frame_bytes_; }
    void clear() { bytes_ = 0; }
    Bytes bytes() const { return Bytes(memory_).first(bytes_); }

   private:
    std::size_t frame_bytes_;
    std::vector<std::byte> memory_;
    std::size_t bytes_ = 0;
  };

  FileFrames(AudioFile file, const ClientFormat& from, const FrameType& to)
      : file_(std::move(file)),
        converter_(std::make_unique<InputConverter>(from, to)),
        block_(to.bytes()) {}

  AudioFile file_;
  std::unique_ptr<InputConverter> converter_;
  Block block_;
  bool drained_ = false;
};

}  // namespace millrace
