// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/export/audio_output.h"

#include <fcntl.h>
#include <sndfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <system_error>

#include "base/file_descriptor.h"

namespace millrace::recordings {
namespace {

constexpr std::size_t block_frames = 16 << 10;

SF_INFO info_of(const FrameType& frames, AudioForm form) {
  SF_INFO info{};
  info.samplerate = static_cast<int>(std::lround(frames.rate));
  info.channels = static_cast<int>(frames.values);
  const int values = frames.element == Element::f32 ? SF_FORMAT_FLOAT : SF_FORMAT_PCM_16;
  info.format = (form == AudioForm::flac ? SF_FORMAT_FLAC : SF_FORMAT_WAV) | values;
  return info;
}

std::string_view name_of_form(AudioForm form) { return form == AudioForm::flac ? "FLAC" : "WAV"; }

}  // namespace

std::optional<std::string> unsupported(const FrameType& frames, AudioForm form) {
  const std::string python = "read it in Python, with millrace.recordings";
  if (frames.features) return "its frames are features, not audio: " + python;
  if (frames.element == Element::f16)
    return "its frames are f16, which no audio file has: " + python;
  if (frames.element == Element::f32 && form == AudioForm::flac)
    return std::string("its frames are f32, and FLAC has only integers: use --format wav");
  const SF_INFO info = info_of(frames, form);
  constexpr double most_rate = 1'000'000;
  if (frames.rate < 1 || frames.rate > most_rate || frames.rate != std::floor(frames.rate) ||
      frames.values > 1024 || sf_format_check(&info) == SF_FALSE)
    return std::string(name_of_form(form)) +
           " cannot have its rate or its number of channels: " + python;
  return std::nullopt;
}

void AudioOutput::Close::operator()(sf_private_tag* file) const { sf_close(file); }

Result<AudioOutput, std::string> AudioOutput::create(int folder, const std::string& name,
                                                     const FrameType& frames, AudioForm form) {
  const int flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor descriptor(::openat(folder, name.c_str(), flags, 0600));
  if (!descriptor) return name + ": " + std::generic_category().message(errno);
  SF_INFO info = info_of(frames, form);
  // libsndfile closes the descriptor that it was given, even if it cannot open the file.
  File file(sf_open_fd(::dup(descriptor.get()), SFM_WRITE, &info, SF_TRUE));
  if (!file) return name + ": " + sf_strerror(nullptr);
  // The chunk PEAK contains the time of writing: two exports of a stream would differ.
  sf_command(file.get(), SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
  return AudioOutput(name, std::move(file), frames, form == AudioForm::wav);
}

bool AudioOutput::put(const std::byte* values, std::size_t frames) {
  const auto count = static_cast<sf_count_t>(frames);
  if (frames_.element == Element::f32)
    return sf_writef_float(file_.get(), reinterpret_cast<const float*>(values), count) == count;
  return sf_writef_short(file_.get(), reinterpret_cast<const short*>(values), count) == count;
}

std::string AudioOutput::too_long() const {
  return name_ + ": would have more than 4 GiB, the most of a WAV file";
}

std::string AudioOutput::failed() const {
  return name_ + ": cannot be written: " + sf_strerror(file_.get());
}

Result<void, std::string> AudioOutput::write(Bytes frames) {
  if (frames.size() > most_bytes - bytes_) return too_long();
  bytes_ += frames.size();
  // Copied, because libsndfile requires aligned values.
  block_.resize(block_frames * frames_.bytes());
  while (!frames.empty()) {
    const Bytes part = frames.first(std::min(frames.size(), block_.size()));
    std::memcpy(block_.data(), part.data(), part.size());
    if (!put(block_.data(), part.size() / frames_.bytes())) return failed();
    frames = frames.subspan(part.size());
  }
  return {};
}

Result<void, std::string> AudioOutput::write_silence(std::uint64_t frames) {
  if (has_holes_ && frames > block_frames) {
    // The last frames are written, because only that makes the file longer.
    const std::uint64_t skipped = frames - block_frames;
    if (skipped > (most_bytes - bytes_) / frames_.bytes()) return too_long();
    bytes_ += skipped * frames_.bytes();
    if (sf_seek(file_.get(), static_cast<sf_count_t>(skipped), SEEK_CUR) < 0) return failed();
    frames = block_frames;
  }
  const std::vector<std::byte> zeros(block_frames * frames_.bytes());
  while (frames > 0) {
    const auto part = std::min<std::uint64_t>(frames, block_frames);
    if (const auto written =
            write(Bytes(zeros).first(static_cast<std::size_t>(part) * frames_.bytes()));
        !written)
      return written;
    frames -= part;
  }
  return {};
}

Result<void, std::string> AudioOutput::finish() {
  if (const int error = sf_close(file_.release()); error != SF_ERR_NO_ERROR)
    return name_ + ": cannot be written: " + sf_error_number(error);
  return {};
}

}  // namespace millrace::recordings
