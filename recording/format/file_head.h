// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "recording/format/mcap.h"

namespace millrace::recording {

// Facts about a recording file.
struct FileHead {
  std::uint64_t file = 0;          // its number in the directory
  std::string run{};               // 32 hex digits, random: one run of the writing process
  std::string id{};                // 32 hex digits, random: those of the file's markers
  std::uint64_t first_stream = 1;  // no stream with this number or a later one is in earlier files
  std::int64_t created = 0;        // nanoseconds since 1970
};

// The metadata record `millrace` of a recording file (docs/recording_format.md). MCAP has no
// checksum for metadata, so `crc` has one: CRC-32 of the other keys and values, each followed by a
// zero byte, in the order of the keys, as 8 hex digits.
std::map<std::string, std::string> to_metadata(const FileHead& head);

// A head that is not valid, or that a later version wrote. `format` is 0 if the metadata is
// damaged.
struct HeadError {
  int format = 0;
};
Result<FileHead, HeadError> head_from(mcap::TextMap metadata);

}  // namespace millrace::recording
