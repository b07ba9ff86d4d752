// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/result.h"
#include "input/audio_file.h"
#include "input/input_converter.h"

namespace millrace {

// An audio file, or a part of it, as frames of a pipeline: its rate and its channels are converted
// as the service does it for a client that sends the values. If the pipeline has one channel and
// the file has several, these are averaged. Frames do not depend on how many are read at once.
// Confined to one thread.
class ConvertedFile {
 public:
  static constexpr std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();

  // Why audio of this rate and these channels cannot become frames of this type, as the rest of a
  // sentence that begins with the name of the file. Empty: it can.
  static std::string fault(double rate, std::uint32_t channels, const FrameType& frames);

  // Begins with the next frame of the file, and takes at most `most` frames of it. `sent`: s16le or
  // f32le, the format in which the client sends the values. Requires: fault() is empty. Throws
  // std::bad_alloc.
  ConvertedFile(AudioFile file, const FrameType& frames, SampleFormat sent,
                std::uint64_t most = whole);

  // Writes the next frames. Returns their number, which is less than fit only at the end. The error
  // is a sentence without the file's name.
  Result<std::size_t, std::string> read(MutableBytes into);
  // Drops the next frames. Returns their number, which is less only at the end.
  Result<std::uint64_t, std::string> skip(std::uint64_t frames);

 private:
  // The frames that were converted and not yet read.
  class Block final : public FrameSink {
   public:
    explicit Block(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}
    MutableBytes writable(std::size_t frames) override;
    void append(std::size_t frames) override { end_ += frames * frame_bytes_; }
    Bytes rest() const { return Bytes(memory_).subspan(begin_, end_ - begin_); }
    void drop(std::size_t bytes);

   private:
    std::size_t frame_bytes_;
    std::vector<std::byte> memory_;
    std::size_t begin_ = 0, end_ = 0;
  };

  // The converted bytes, at least one frame; empty at the end.
  Result<Bytes, std::string> rest();

  AudioFile file_;
  Element sent_;
  std::size_t frame_bytes_;
  std::uint64_t left_;  // frames that remain in the file
  std::unique_ptr<InputConverter> converter_;
  std::vector<std::byte> values_;  // that were read
  Block block_;
  bool drained_ = false;
};

}  // namespace millrace
