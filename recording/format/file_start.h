// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/format/file_head.h"

namespace millrace::recording {

// Random bytes in all markers of a recording file.
using FileId = std::array<std::byte, 16>;
std::optional<FileId> id_from(const std::string& hex);
std::string to_hex(const FileId& id);

// The first records of a recording file: magic, header, metadata and schema.
struct FileStart {
  std::optional<FileHead> head{};  // nullopt: damaged, or not yet written
  bool complete = false;           // false: perhaps the file ends before the end of the schema
  std::uint64_t metadata_offset = 0, metadata_bytes = 0;  // the Metadata record; 0: damaged
  std::uint64_t end = 0;                                  // the first marker is here or later
  std::string damage{};                                   // a sentence; empty: all records are good
};

// Bytes of a file that contain its first records.
inline constexpr std::size_t start_bytes = 64 << 10;

// Reads the first bytes of a file: start_bytes, or the whole file. The error says why this is not a
// file that this version can read: "is not an MCAP file". A damaged file is accepted if the profile
// or the metadata shows that Millrace wrote the file.
Result<FileStart, std::string> read_start(Bytes first);

}  // namespace millrace::recording
