// SPDX-License-Identifier: Apache-2.0
#include "commands/chunking/file_frames.h"

#include <span>

namespace millrace {

namespace {

constexpr std::size_t block_frames = 16384;  // frames of the file read at once

}  // namespace

MutableBytes FileFrames::Block::writable(std::size_t frames) {
  const std::size_t needed = bytes_ + frames * frame_bytes_;
  if (memory_.size() < needed) memory_.resize(needed);
  return MutableBytes(memory_).subspan(bytes_, frames * frame_bytes_);
}

Result<FileFrames, std::string> FileFrames::open(AudioFile file, const FrameType& frames) {
  if (frames.features) return std::string("is audio; the pipeline takes features");
  ClientFormat from{.format = SampleFormat::s16le, .values = file.channels(), .rate = file.rate()};
  if (from.values != frames.values) {
    if (frames.values != 1)
      return "has " + std::to_string(from.values) + " channels; the pipeline takes " +
             std::to_string(frames.values);
    from.channel = MeanOfChannels{};
  }
  return FileFrames(std::move(file), from, frames);
}

// A block may give no frame, if the resampler holds its frames back.
Result<Bytes, std::string> FileFrames::read() {
  block_.clear();
  while (block_.bytes().empty() && !drained_) {
    const auto samples = file_.read(block_frames);
    if (!samples) return samples.error();
    if (samples->empty()) {
      converter_->drain(0, block_);
      drained_ = true;
    } else if (converter_->convert(std::as_bytes(*samples), block_).fault !=
               InputConverter::Fault::none) {
      return std::string("has values that are not finite");
    }
  }
  return block_.bytes();
}

}  // namespace millrace
