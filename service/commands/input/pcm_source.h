// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "service/commands/input/audio_source.h"

namespace millrace {

// Raw audio in a file or a pipe, from the present position of the descriptor. Does not wait for
// data that has not arrived yet. Confined to one thread.
class PcmSource final : public AudioSource {
 public:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  // Reads at most `bytes` bytes.
  PcmSource(FileDescriptor file, const AudioFormat& format, std::uint64_t bytes = all)
      : file_(std::move(file)), format_(format), left_(bytes) {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override;
  int descriptor() const override { return file_.get(); }

 private:
  bool is_readable() const;

  const FileDescriptor file_;
  const AudioFormat format_;
  std::uint64_t left_;  // bytes that may still be read
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // bytes of buffer_
};

}  // namespace millrace
