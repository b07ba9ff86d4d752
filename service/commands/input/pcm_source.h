// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "input/containers/sample_bytes.h"
#include "service/commands/input/audio_source.h"

namespace millrace {

// Raw audio in a file or a pipe, from the present position of the descriptor. Does not wait for
// data that has not arrived yet. Confined to one thread.
class PcmSource final : public AudioSource {
 public:
  // `header`: that of a WAV stream. If more audio follows than it declares, it is read too: the
  // header was written before the end was known. nullopt: all bytes are audio.
  PcmSource(FileDescriptor file, const AudioFormat& format,
            const std::optional<SampleBytes>& header)
      : file_(std::move(file)),
        format_(format),
        header_(header.value_or(SampleBytes())),
        left_(header ? header->declared : all),
        checks_next_(header.has_value()) {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override;
  int descriptor() const override { return file_.get(); }
  std::string length_notice() const override;

 private:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  bool is_readable() const;
  Result<std::optional<std::size_t>, std::string> take(MutableBytes into);
  Result<bool, std::string> check_next();

  const FileDescriptor file_;
  const AudioFormat format_;
  const SampleBytes header_;
  std::uint64_t left_;         // bytes that may still be read
  std::uint64_t missing_ = 0;  // declared bytes that did not arrive
  bool has_more_ = false;      // audio followed the declared bytes
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;   // bytes of buffer_
  bool checks_next_;         // the bytes after the declared ones decide whether audio follows
  std::uint64_t zeros_ = 0;  // those of these bytes that come first and are not read yet
  std::array<std::byte, behind_bytes> next_{};  // the bytes after them
  std::size_t next_count_ = 0;
  std::size_t next_unread_ = 0;  // the last ones, if they are audio and not read yet
};

}  // namespace millrace
