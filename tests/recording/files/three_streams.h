// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/recording/files/planned_file.h"

namespace millrace::recording {

// A directory whose file 1 has slices of streams 1, 2 and 3, one commit each, three times. Only
// stream 2 ends.
struct ThreeStreams {
  explicit ThreeStreams(bool sealed, int commits = 3) {
    auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
    for (int commit = 0; commit < commits; ++commit) {
      for (TestStream* stream : {&one, &two, &three}) {
        stream->add(writer, 100, stream == &two && commit + 1 == commits);
        expect(writer.write());
      }
    }
    if (sealed) expect(writer.seal());
  }

  ~ThreeStreams() {
    auto file = RecordingFile::open(directory, 1);
    if (file && file->sealed() && file->verify()) keep_file(directory, 1);
  }
  RecordingFile open(FileNumber number = 1) const {
    return expect(RecordingFile::open(directory, number));
  }
  std::string path(FileNumber number = 1) const { return folder / Directory::file_name(number); }
  void flip(std::uint64_t offset) const {
    const FileDescriptor file(::open(path().c_str(), O_RDWR));
    char byte = 0;
    REQUIRE(::pread(file.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
    byte = static_cast<char>(byte ^ 1);
    REQUIRE(::pwrite(file.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
  }
  // The bytes of a chunk.
  std::string content(const ChunkPlace& place) const {
    std::string bytes(place.bytes, '\0');
    const FileDescriptor file(::open(path().c_str(), O_RDONLY));
    REQUIRE(::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(place.offset)) ==
            static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  std::vector<std::uint64_t> streams() const {
    RecordingFile file = open();
    std::vector<std::uint64_t> streams;
    for (const StreamPart& part : file.parts()) streams.push_back(part.stream);
    return streams;
  }
  timespec last_write() const {
    struct stat facts {};
    REQUIRE(::stat(path().c_str(), &facts) == 0);
    return facts.st_mtim;
  }

  void set_last_write(std::int64_t seconds) const {
    const timespec times[2] = {{seconds, 5}, {seconds, 5}};
    REQUIRE(::utimensat(AT_FDCWD, path().c_str(), times, 0) == 0);
  }

  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  TestStream one{1}, two{2}, three{3};
};

}  // namespace millrace::recording
