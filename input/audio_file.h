// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/result.h"

struct sf_private_tag;  // libsndfile's SNDFILE
struct SF_INFO;

namespace millrace {

class PatchedFile;
struct SampleExtent;

// Reads an audio file (WAV, FLAC, Ogg and every other format of libsndfile) from front to back,
// with the file's rate and channels. Values are converted as those of a client. Errors are
// sentences without the file's name. Confined to one thread.
//
// The length in a header is not trusted: if the header has none, or less than the file, all of the
// file is read.
class AudioFile {
 public:
  static Result<AudioFile, std::string> open(const std::string& path);
  // As open(), for a file that open() has accepted: reads no more of it than is needed now.
  static Result<AudioFile, std::string> reopen(const std::string& path);
  AudioFile(AudioFile&& other) noexcept;
  AudioFile& operator=(AudioFile&& other) noexcept;
  ~AudioFile();

  // The error of a read, if a value is NaN or infinite.
  static constexpr std::string_view not_finite = "has values that are not finite";

  const std::string& path() const { return path_; }
  double rate() const { return rate_; }
  std::uint32_t channels() const { return channels_; }
  // The frames that the file should have: more than can be read if it was cut. nullopt: only
  // reading it to its end shows them.
  const std::optional<std::uint64_t>& frames() const { return frames_; }
  // The header has a length, and the file has more frames.
  bool exceeds_header() const { return exceeds_header_; }
  // The values are 16-bit integers, so that s16 frames are exactly those of the file.
  bool pcm16() const { return pcm16_; }
  // The values have more than 16 bits: integers of 20 bits or more, or floats.
  bool is_deep() const { return deep_; }
  // The offset in the file of its frames, if they lie there as s16; 0 if they must be decoded.
  std::uint64_t place() const { return place_; }

  // The next frames as s16, at most `most`, with interleaved channels; empty at the end of the
  // file. Valid until the next call.
  Result<std::span<const std::int16_t>, std::string> read(std::size_t most);

  // Writes the next frames with values `element` into `into`. Returns their number, which is less
  // than fit only at the end of the file. Requires: `into` is aligned for `element`.
  Result<std::size_t, std::string> read(Element element, MutableBytes into);

  // Skips frames. Exact in every format: a format without exact positions is decoded. At the end of
  // the file, fewer are skipped. Returns their number.
  Result<std::uint64_t, std::string> skip(std::uint64_t frames);

 private:
  struct Close {
    void operator()(sf_private_tag* file) const;
  };
  using File = std::unique_ptr<sf_private_tag, Close>;

  explicit AudioFile(std::string path);
  static Result<AudioFile, std::string> open(const std::string& path, SF_INFO& format);
  Result<void, std::string> open(const SampleExtent* extent, SF_INFO& format);
  void open_mpeg(SF_INFO& format);
  void open_patched(std::unique_ptr<PatchedFile> file, SF_INFO& format);
  void set_frames(const SampleExtent& extent);
  Result<std::uint64_t, std::string> seek(std::uint64_t frames);
  Result<std::uint64_t, std::string> decode(std::uint64_t frames);
  Result<std::size_t, std::string> read_part(Element element, std::byte* into, std::size_t most);

  std::string path_;
  std::unique_ptr<PatchedFile> patched_;  // null: libsndfile reads the file itself
  File file_;
  double rate_ = 0;
  std::uint32_t channels_ = 0;
  std::optional<std::uint64_t> frames_;
  std::uint64_t held_ = 0;  // frames that libsndfile finds, if frames_ is known
  std::uint64_t place_ = 0;
  bool pcm16_ = false, deep_ = false;
  bool exact_seek_ = false;
  bool exceeds_header_ = false;
  std::vector<float> floats_;
  std::vector<std::int16_t> samples_;
};

// True if the name of a file ends like that of an audio format, such as .wav, .flac or .ogg.
bool is_audio_name(std::string_view name);

}  // namespace millrace
