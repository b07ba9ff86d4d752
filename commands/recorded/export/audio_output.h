// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/result.h"

struct sf_private_tag;  // libsndfile's SNDFILE

namespace millrace::recordings {

enum class AudioForm : std::uint8_t { wav, flac };

// Why frames of this type cannot be written in this form, as a sentence; nullopt if they can.
std::optional<std::string> unsupported(const FrameType& frames, AudioForm form);

// An audio file that is being written: s16 as 16-bit integers, f32 as floats, bit for bit. Errors
// are lines that begin with the file's name. Confined to one thread.
class AudioOutput {
 public:
  // A WAV file holds at most 4 GiB.
  static constexpr std::uint64_t most_bytes = (std::uint64_t{4} << 30) - (1 << 20);

  // Creates the file in the open folder; an existing file is an error. Requires: not unsupported().
  static Result<AudioOutput, std::string> create(int folder, const std::string& name,
                                                 const FrameType& frames, AudioForm form);

  Result<void, std::string> write(Bytes frames);
  // Long silence of a WAV file is a hole: it takes neither time nor space on the disk.
  Result<void, std::string> write_silence(std::uint64_t frames);
  // Completes the file. Nothing can be written afterwards.
  Result<void, std::string> finish();

 private:
  struct Close {
    void operator()(sf_private_tag* file) const;
  };
  using File = std::unique_ptr<sf_private_tag, Close>;

  AudioOutput(std::string name, File file, const FrameType& frames, bool has_holes)
      : name_(std::move(name)), file_(std::move(file)), frames_(frames), has_holes_(has_holes) {}
  std::string too_long() const;
  std::string failed() const;
  bool put(const std::byte* values, std::size_t frames);

  std::string name_;
  File file_;
  FrameType frames_;
  bool has_holes_;
  std::vector<std::byte> block_;
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace::recordings
