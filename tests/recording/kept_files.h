// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "recording/files/recording_file.h"
#include "recording/format/checksums.h"
#include "tests/recording/recording_files.h"

namespace millrace::recording {

// If the environment has KEEP_FILES, a folder, copies a sealed file to it, with a list of its
// messages: kept_files_test.py compares them with those that another reader finds. Each line of the
// list has the stream, the number of the slice, and the CRC-32 of the message.
inline void keep_file(const Directory& directory, FileNumber number) {
  const char* folder = std::getenv("KEEP_FILES");
  if (!folder) return;
  static int count = 0;
  const std::string copy = std::string(folder) + "/" + std::to_string(++count) + ".mcap";
  std::filesystem::copy_file(directory.path() + "/" + Directory::file_name(number), copy);
  auto file = expect(RecordingFile::open(directory, number));
  std::ofstream list(copy + ".txt");
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk)
    for (const SliceMessage& message : expect(file.messages(chunk)))
      list << file.channels().at(message.channel).number << ' ' << message.number << ' '
           << crc32(message.bytes) << '\n';
}

}  // namespace millrace::recording
