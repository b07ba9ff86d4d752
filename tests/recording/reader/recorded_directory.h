// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "recording/files/directory.h"
#include "recording/files/file_writer.h"
#include "recording/reader/recordings.h"
#include "tests/recording/recording_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {

// A new directory of recording files, as a service writes it.
class RecordedDirectory {
 public:
  RecordedDirectory()
      : directory(expect(Directory::open(temporary.path(), Directory::For::writing))) {}

  // Begins a recording file. All files of a run have the same `run`.
  FileWriter begin(FileNumber number, char run = 'a') const {
    FileHead head = head_of(number);
    head.run = std::string(32, run);
    return expect(FileWriter::begin(expect(directory.create(number)), head));
  }
  std::unique_ptr<Recordings> read() const { return expect(Recordings::open(path())); }

  const std::string& path() const { return temporary.path(); }
  std::string file(FileNumber number) const { return temporary / Directory::file_name(number); }

 private:
  TemporaryDirectory temporary{memory_folder()};

 public:
  Directory directory;
};

// Writes and syncs what was added.
inline void commit(FileWriter& writer) {
  expect(writer.write());
  expect(writer.sync());
}

inline void seal(FileWriter& writer) { expect(writer.seal()); }

}  // namespace millrace::recording
