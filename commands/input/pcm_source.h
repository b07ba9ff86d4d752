// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "commands/input/audio_source.h"
#include "input/containers/bytes_behind.h"
#include "input/containers/sample_bytes.h"

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
        checks_next_(header.has_value()),
        behind_(header_) {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override;
  int descriptor() const override { return file_.get(); }
  std::string length_notice() const override;

 private:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  bool is_readable() const;
  Result<std::optional<std::size_t>, std::string> take(MutableBytes into);
  Result<std::optional<std::size_t>, std::string> read_into(MutableBytes into);
  Result<bool, std::string> check_next();

  const FileDescriptor file_;
  const AudioFormat format_;
  const SampleBytes header_;
  std::uint64_t left_;         // bytes that may still be read
  std::uint64_t missing_ = 0;  // declared bytes that did not arrive
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // bytes of buffer_
  bool checks_next_;        // the bytes behind the declared ones decide whether audio follows
  BytesBehind behind_;
  std::uint64_t zeros_unread_ = 0;  // those of behind_ that are audio and not read yet
  std::size_t others_unread_ = 0;
};

}  // namespace millrace
