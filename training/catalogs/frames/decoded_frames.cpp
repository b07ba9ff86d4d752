// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/decoded_frames.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "training/catalogs/frames/stored_file.h"

namespace millrace::training {
namespace {

// Frames that are decoded at once: each call of libsndfile has a fixed cost, and a block of FLAC
// has 4096 frames.
constexpr std::uint64_t block = 4096;
constexpr std::uint64_t most_kept = 32 * 1024 * 1024;  // bytes of a file that is kept as a whole

}  // namespace

Result<std::unique_ptr<FrameSource>, ReadError> DecodedFrames::open(const AudioStream& stream) {
  std::unique_ptr<DecodedFrames> opened(new DecodedFrames(stream));
  if (const auto at = opened->position(0); !at) return at.error();
  return std::unique_ptr<FrameSource>(std::move(opened));
}

Result<Bytes, ReadError> DecodedFrames::frames(std::uint64_t begin, std::uint64_t count) {
  if (count == 0) return Bytes();
  if (begin < first_) {
    // A row at the beginning may begin the next epoch.
    keep_all_ = begin > 0 && stream_.frames * frame_bytes_ <= most_kept;
    if (const auto at = restart(keep_all_ ? 0 : begin); !at) return at.error();
  } else if (!keep_all_ && begin > end()) {
    if (const auto at = restart(begin); !at) return at.error();
  }
  if (!keep_all_) drop_before(begin - std::min(begin, count));
  if (const auto decoded = decode_to(begin + count); !decoded) return decoded.error();
  return Bytes(kept_).subspan(dropped_ + (begin - first_) * frame_bytes_, count * frame_bytes_);
}

Result<DecodedFrames::File, ReadError> DecodedFrames::open_file() const {
  auto file = AudioFile::reopen(stream_.path);
  if (!file) {
    for (const int error : {EMFILE, ENFILE})  // libsndfile gives the text
      if (file.error().ends_with(std::strerror(error))) check_descriptors(stream_.path, error);
    return error_of(file.error());
  }
  const auto& conversion = stream_.conversion;
  const std::uint32_t channels = conversion ? conversion->from_channels : stream_.channels;
  if (file->channels() != channels)
    return ReadError{DataFault::format, stream_.path + ": has " + std::to_string(file->channels()) +
                                            " channels; it had " + std::to_string(channels)};
  const auto skipped = file->skip(stream_.before);
  if (!skipped) return error_of(skipped.error());
  if (*skipped < stream_.before)
    return ReadError{DataFault::length,
                     stream_.path + ": ends after " + std::to_string(*skipped) + " of " +
                         std::to_string(in_file(stream_.frames) + stream_.behind) + " frames"};
  if (!conversion) return File(std::move(*file));
  if (file->rate() != conversion->from_rate)
    return ReadError{DataFault::format, stream_.path + ": has another rate than before"};
  const FrameType to{stream_.element, stream_.channels, conversion->rate, false};
  return File(
      ConvertedFile(std::move(*file), to,
                    stream_.element == Element::s16 ? SampleFormat::s16le : SampleFormat::f32le,
                    stream_.behind > 0 ? conversion->from_frames : ConvertedFile::whole));
}

Result<void, ReadError> DecodedFrames::position(std::uint64_t frame) {
  if (!file_ || at_ > frame) {
    file_.reset();
    at_ = 0;
    auto file = open_file();
    if (!file) return file.error();
    file_ = std::move(*file);
  }
  if (at_ == frame) return {};
  const auto skipped = std::visit([&](auto& file) { return file.skip(frame - at_); }, *file_);
  if (skipped) at_ += *skipped;
  if (at_ == frame) return {};
  file_.reset();
  return skipped ? ends_after(at_) : error_of(skipped.error());
}

Result<void, ReadError> DecodedFrames::restart(std::uint64_t frame) {
  dropped_ = 0;
  first_ = frame;
  count_ = 0;
  kept_.clear();
  return position(frame);
}

Result<void, ReadError> DecodedFrames::decode_to(std::uint64_t wanted) {
  if (wanted <= end()) return {};
  const std::uint64_t ahead = std::min(stream_.frames, std::max(wanted, end() + block));
  auto decoded = decode(ahead - end());
  // The damage may be behind the wanted frames. These are decoded again, alone.
  if (!decoded && ahead > wanted) decoded = decode(wanted - end());
  if (decoded && end() == stream_.frames && stream_.behind == 0) decoded = check_end();
  return decoded;
}

Result<void, ReadError> DecodedFrames::decode(std::uint64_t frames) {
  if (const auto at = position(end()); !at) return at.error();
  const std::size_t before = kept_.size(), bytes = frames * frame_bytes_;
  kept_.resize(before + bytes);
  const auto got = read(MutableBytes(kept_).subspan(before));
  if (got && *got == frames) {
    count_ += frames;
    at_ += frames;
    return {};
  }
  kept_.resize(before);
  file_.reset();
  return got ? ends_after(end() + *got) : error_of(got.error());
}

Result<std::size_t, std::string> DecodedFrames::read(MutableBytes into) {
  if (auto* plain = std::get_if<AudioFile>(&*file_)) return plain->read(stream_.element, into);
  return std::get<ConvertedFile>(*file_).read(into);
}

// A damage behind the last frame does no harm.
Result<void, ReadError> DecodedFrames::check_end() {
  std::vector<std::byte> frame(frame_bytes_);
  const auto got = read(frame);
  file_.reset();
  if (!got || *got == 0) return {};
  first_ = count_ = dropped_ = 0;
  kept_.clear();
  return ReadError{DataFault::length, stream_.path + ": has more than " +
                                          std::to_string(in_file(stream_.frames)) + " frames"};
}

void DecodedFrames::drop_before(std::uint64_t frame) {
  if (frame <= first_) return;
  const std::uint64_t frames = std::min(frame - first_, count_);
  first_ += frames;
  count_ -= frames;
  dropped_ += frames * frame_bytes_;
  if (dropped_ * 2 < kept_.size()) return;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(dropped_));
  dropped_ = 0;
}

ReadError DecodedFrames::error_of(const std::string& reason) const {
  const DataFault fault = reason == AudioFile::not_finite ? DataFault::format : DataFault::read;
  return {fault, stream_.path + ": " + reason};
}

ReadError DecodedFrames::ends_after(std::uint64_t frames) const {
  return {DataFault::length, stream_.path + ": ends after " + std::to_string(in_file(frames)) +
                                 " of " + std::to_string(in_file(stream_.frames) + stream_.behind) +
                                 " frames"};
}

std::uint64_t DecodedFrames::in_file(std::uint64_t frame) const {
  if (!stream_.conversion) return stream_.before + frame;
  const auto& [rate, from_rate, from_channels, from_frames] = *stream_.conversion;
  if (frame == stream_.frames) return stream_.before + from_frames;
  return stream_.before + static_cast<std::uint64_t>(static_cast<double>(frame) * from_rate / rate);
}

}  // namespace millrace::training
