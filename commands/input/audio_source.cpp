// SPDX-License-Identifier: Apache-2.0
#include "commands/input/audio_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "commands/input/pcm_source.h"
#include "commands/input/wav_header.h"
#include "input/audio_file.h"
#include "schemas/text.h"

namespace millrace {
namespace {

// A file in a format of libsndfile.
class FileSource final : public AudioSource {
 public:
  explicit FileSource(AudioFile file)
      : file_(std::move(file)), format_{.rate = file_.rate(), .channels = file_.channels()} {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override {
    const auto frames = file_.read(most);
    if (!frames) return frames.error();
    read_ += frames->size() / format_.channels;
    return std::optional<Bytes>(std::as_bytes(*frames));
  }
  std::string length_notice() const override {
    if (file_.exceeds_header()) return std::string(more_than_header);
    if (!file_.frames() || read_ >= *file_.frames()) return {};
    return "ends after " + std::to_string(read_) + " of the " + std::to_string(*file_.frames()) +
           " frames in its header";
  }

 private:
  AudioFile file_;
  const AudioFormat format_;
  std::uint64_t read_ = 0;  // frames
};

OpenedAudio pcm(FileDescriptor file, const AudioFormat& format,
                const std::optional<SampleBytes>& header = std::nullopt) {
  return std::unique_ptr<AudioSource>(std::make_unique<PcmSource>(std::move(file), format, header));
}

// Empty if no conversion helps: the file has no bytes, or cannot be read at all.
std::string hint_for(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error || bytes == 0 || ::access(path.c_str(), R_OK) != 0) return {};
  const char* converted =
      path == "audio.wav" || path == "./audio.wav" ? "converted.wav" : "audio.wav";
  // ffmpeg takes a:b.wav for the protocol `a`, and -a.wav for an option.
  const bool is_plain = path.find(':') == std::string::npos && !path.starts_with('-');
  return "; convert it: ffmpeg -i " + shell_quoted(is_plain ? path : "file:" + path) + " " +
         converted;
}

}  // namespace

OpenedAudio open_audio(const std::string& path, const std::optional<AudioFormat>& raw) {
  const bool input = path == "-";
  if (!input && !raw) {
    auto file = AudioFile::open(path);
    if (!file) return file.error() + hint_for(path);
    return std::unique_ptr<AudioSource>(std::make_unique<FileSource>(std::move(*file)));
  }
  FileDescriptor file(input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::string("cannot be read: ") + std::strerror(errno);
  if (raw) return pcm(std::move(file), *raw);
  const auto header = read_wav_header(file.get());
  if (!header) return header.error();
  return pcm(std::move(file), header->format, header->samples);
}

}  // namespace millrace
