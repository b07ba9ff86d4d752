// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "input/audio_file.h"
#include "input/files/converted_file.h"
#include "training/catalogs/frames/file_identity.h"
#include "training/catalogs/frames/frame_source.h"

namespace millrace::training {

// The frames of an audio file that is decoded, and perhaps converted: then always from the begin of
// the stream, because a resampler depends on all frames before. Keeps the frames of the last
// window, so that rows in order need each frame decoded once. After a step back by more than that,
// the file is decoded from its beginning, and from then on all frames are kept: rows in random
// order decode it twice. Files of more than 32 MiB are not kept: each step back decodes them again.
class DecodedFrames final : public FrameSource {
 public:
  static Result<std::unique_ptr<FrameSource>, ReadError> open(const AudioStream& stream);

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override;
  bool is_current() override { return identity_ && identity_of(stream_.path) == identity_; }
  std::size_t descriptors() const override { return file_ ? 1 : 0; }
  std::size_t memory() const override { return kept_.capacity() + (file_ ? decoder_bytes : 0); }

 private:
  static constexpr std::size_t decoder_bytes = 256 << 10;  // an estimate of libsndfile's decoders

  explicit DecodedFrames(const AudioStream& stream)
      : stream_(stream),
        identity_(identity_of(stream.path)),
        frame_bytes_(size_of(stream.element) * stream.channels) {}

  std::uint64_t end() const { return first_ + count_; }
  using File = std::variant<AudioFile, ConvertedFile>;

  // Opens the file at the begin of the stream.
  Result<File, ReadError> open_file() const;
  // Puts the decoder at a frame of the stream. Opens the file again if the frame is before it.
  Result<void, ReadError> position(std::uint64_t frame);
  // The same, and forgets the kept frames.
  Result<void, ReadError> restart(std::uint64_t frame);
  Result<void, ReadError> decode_to(std::uint64_t wanted);
  // Decodes `frames` frames behind the kept ones. The kept ones remain after an error.
  Result<void, ReadError> decode(std::uint64_t frames);
  Result<std::size_t, std::string> read(MutableBytes into);
  // All frames were decoded: the file must end.
  Result<void, ReadError> check_end();
  void drop_before(std::uint64_t frame);
  ReadError error_of(const std::string& reason) const;
  // The error for a file that ends after these frames of the stream.
  ReadError ends_after(std::uint64_t frames) const;
  // The frames of the file up to this frame of the stream.
  std::uint64_t in_file(std::uint64_t frame) const;

  const AudioStream stream_;
  const std::optional<FileIdentity> identity_;  // when it was opened
  const std::size_t frame_bytes_;
  std::optional<File> file_;  // nullopt after an error
  std::uint64_t at_ = 0;      // frame of the decoder, in the stream
  bool keep_all_ = false;
  std::vector<std::byte> kept_;
  std::size_t dropped_ = 0;              // bytes at the beginning of kept_
  std::uint64_t first_ = 0, count_ = 0;  // the other frames in kept_
};

}  // namespace millrace::training
