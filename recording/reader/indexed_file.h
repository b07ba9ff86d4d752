// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recording/files/recording_file.h"

namespace millrace::recording {

// A recording file, and where the slices of each stream are in it. Confined to one thread.
class IndexedFile {
 public:
  explicit IndexedFile(RecordingFile from) : file(std::move(from)) {}

  // The channel of a stream; nullopt if the file has none.
  std::optional<std::uint16_t> channel_of(std::uint64_t stream);
  // The chunks with messages of this channel, ascending: indexes of RecordingFile::chunks(). An
  // unsealed file may get more.
  const std::vector<std::uint32_t>& chunks_of(std::uint16_t channel);

  // RecordingFile::messages(), kept for some chunks: the streams of a chunk are often read
  // together. Null: the chunk is damaged. Valid until the next call.
  const std::vector<SliceMessage>* messages(std::size_t chunk);

  RecordingFile file;

 private:
  void index(std::size_t chunk);
  void add(std::uint16_t channel, std::size_t chunk);

  std::unordered_map<std::uint64_t, std::uint16_t> channels_;             // by stream
  std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> chunks_;  // by channel
  struct Kept {
    std::size_t chunk = 0;
    std::vector<SliceMessage> messages{};
    bool used = false;
  };
  // By the number of the chunk. Streams of one file that are read in turns are up to a few MiB
  // apart. Empty until the first call.
  static constexpr std::size_t most_kept = 256;
  std::vector<Kept> kept_;
  std::size_t indexed_channels_ = 0;
  std::size_t indexed_chunks_ = 0;
};

}  // namespace millrace::recording
