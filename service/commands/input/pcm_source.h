// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
  // `declared`: the bytes of audio by a WAV header. If more audio follows, and no other chunk, it
  // is read too: the header was written before the end was known. nullopt: all bytes are audio.
  PcmSource(FileDescriptor file, const AudioFormat& format,
            const std::optional<std::uint64_t>& declared)
      : file_(std::move(file)),
        format_(format),
        declared_(declared.value_or(0)),
        left_(declared.value_or(all)),
        checks_next_(declared.has_value()) {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override;
  int descriptor() const override { return file_.get(); }
  std::string shortfall() const override;

 private:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  bool is_readable() const;
  Result<std::optional<std::size_t>, std::string> take(MutableBytes into);
  void check_next(std::size_t got);

  const FileDescriptor file_;
  const AudioFormat format_;
  const std::uint64_t declared_;  // bytes; 0 if `left_` begins with all
  std::uint64_t left_;            // bytes that may still be read
  std::uint64_t missing_ = 0;     // bytes of declared_ that did not arrive
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // bytes of buffer_
  bool checks_next_;        // the bytes after the declared ones decide whether audio follows
  std::array<std::byte, 8> next_{};  // these bytes
  std::size_t next_count_ = 0;
  std::size_t next_unread_ = 0;  // the last ones, if they are audio and not read yet
};

}  // namespace millrace
