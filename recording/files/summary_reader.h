// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/files/file_window.h"
#include "recording/format/chunk_builder.h"
#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A whole chunk of the file.
struct ChunkPlace {
  std::uint64_t offset = 0;               // begin of the Chunk record
  std::uint64_t bytes = 0;                // length of the Chunk record
  std::uint64_t number = 0;               // from its marker
  std::vector<std::uint16_t> channels{};  // that have messages in it, ascending; empty: unknown
};

// The entry of the summary about a chunk, damaged or not.
struct ChunkEntry {
  mcap::ChunkFacts facts{};
  std::vector<mcap::IndexPlace> indexes{};
};

// A chunk as it is on the disk. Zeros stand for bytes that cannot be read.
struct RawChunk {
  ChunkEntry entry{};
  Bytes record{}, indexes{};  // the Chunk record, and the MessageIndex records behind it
};

// The summary at the end of a sealed file. Its checksum is good.
struct FileSummary {
  std::map<std::uint16_t, StreamMeta> channels{};
  std::vector<ChunkPlace> chunks{};
  std::uint64_t parts_offset = 0;  // begin of the Attachment record `parts`; 0: it is missing
  std::uint64_t parts_bytes = 0;
  std::uint64_t data_bytes = 0;  // length of the file before the DataEnd record
  std::uint32_t data_crc = 0;    // their checksum
};

// Reads the summary of a file. nullopt: the file has no footer, so it was not sealed, or is cut
// off. The error is a sentence: "the checksum of the summary is wrong".
Result<std::optional<FileSummary>, std::string> read_summary(FileWindow& file);

// Reads the entry of the chunk that begins at the offset `chunk`. nullopt: the summary has no
// such entry, or cannot be read again.
std::optional<ChunkEntry> read_chunk_entry(FileWindow& file, const FileSummary& summary,
                                           std::uint64_t chunk);

// Reads the attachment `parts`. The error is a sentence.
Result<std::vector<StreamPart>, std::string> read_parts(FileWindow& file,
                                                        const FileSummary& summary);

}  // namespace millrace::recording
