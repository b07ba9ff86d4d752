// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/pcm_frames.h"

#include <algorithm>
#include <string>
#include <utility>

#include "input/value_kernels.h"

namespace millrace::training {
namespace {

constexpr std::size_t sample_bytes = 2;

std::uint64_t frame_bytes(const AudioStream& stream) { return sample_bytes * stream.channels; }
// The bytes of the file up to the end of the stream.
std::uint64_t file_bytes(const AudioStream& stream) {
  return stream.place + (stream.before + stream.frames) * frame_bytes(stream);
}

}  // namespace

Result<std::unique_ptr<FrameSource>, ReadError> PcmFrames::open(const AudioStream& stream) {
  auto file = StoredFile::open(stream.path, stream.mapped);
  if (!file) return file.error();
  const std::uint64_t size = file->size();
  if (size < file_bytes(stream)) {
    const std::uint64_t left = (size - std::min(size, stream.place)) / frame_bytes(stream);
    const std::uint64_t all = stream.before + stream.frames + stream.behind;
    return ReadError{DataFault::length, stream.path + ": ends after " + std::to_string(left) +
                                            " of " + std::to_string(all) + " frames"};
  }
  return std::unique_ptr<FrameSource>(new PcmFrames(stream, std::move(*file)));
}

PcmFrames::PcmFrames(const AudioStream& stream, StoredFile file)
    : stream_(stream), file_(std::move(file)) {}

void PcmFrames::put_away() {
  block_.clear();
  converted_ = std::vector<std::byte>();
}

Result<Bytes, ReadError> PcmFrames::frames(std::uint64_t begin, std::uint64_t count) {
  if (count == 0) return Bytes();
  const auto samples = file_.read(stream_.place + (stream_.before + begin) * frame_bytes(stream_),
                                  count * frame_bytes(stream_), block_);
  if (!samples || stream_.element == Element::s16) return samples;
  const std::size_t values = count * stream_.channels;
  converted_.resize(std::max(converted_.size(), values * size_of(stream_.element)));
  value_kernel(SampleFormat::s16le, stream_.element)(samples->data(), converted_.data(), values);
  return Bytes(converted_).first(values * size_of(stream_.element));
}

}  // namespace millrace::training
