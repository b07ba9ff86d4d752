// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "recording/files/recording_file.h"
#include "tests/recording/kept_files.h"
#include "tests/recording/recording_files.h"
#include "tests/recording/slice_plan.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {

// All messages of a file that can be read.
inline Messages read_all(RecordingFile& file) {
  Messages read;
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk) {
    const auto messages = file.messages(chunk);
    if (!messages) continue;
    for (const SliceMessage& message : *messages) {
      const auto meta = file.channels().find(message.channel);
      if (meta == file.channels().end()) continue;
      read[{meta->second.number, message.number}] = {message.bytes.begin(), message.bytes.end()};
    }
  }
  return read;
}

// Whether all of these messages are among the others, with the same bytes.
inline bool is_part(const Messages& messages, const Messages& of) {
  for (const auto& [key, message] : messages) {
    const auto found = of.find(key);
    if (found == of.end() || found->second != message) return false;
  }
  return true;
}

// A directory in memory with the file 1: slices of a plan, in chunks of a few slices.
struct PlannedFile {
  explicit PlannedFile(std::size_t chunks, std::size_t slices_per_chunk = 3, bool sealed = false,
                       std::uint64_t seed = 1) {
    SlicePlan plan(seed, 3, 20);
    auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::size_t i = 0; i < slices_per_chunk; ++i) {
        const PlannedSlice slice = plan.next();
        const Bytes frames = slice.frames;
        writer.add(slice.meta, slice.number, slice.wall, slice.slice(), {&frames, 1});
        all[{slice.meta.number, slice.number}] = slice.message();
      }
      expect(writer.write());
      after_chunk.push_back(all);
    }
    if (sealed) expect(writer.seal());
    if (sealed) keep_file(directory, 1);
    bytes = content();
  }

  std::string path() const { return folder / Directory::file_name(1); }
  std::vector<char> content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Replaces the content: in place, so that open descriptors see it.
  void set(std::span<const char> content) const {
    std::ofstream(path(), std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  RecordingFile open() const { return expect(RecordingFile::open(directory, 1)); }

  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  Messages all{};                       // all slices that were written
  std::vector<Messages> after_chunk{};  // those up to each chunk
  std::vector<char> bytes{};            // the file
};

}  // namespace millrace::recording
