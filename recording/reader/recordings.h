// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/recording_file.h"
#include "recording/format/stream_meta.h"
#include "recording/reader/indexed_file.h"

namespace millrace::recording {

// A stream of a directory, as the catalog knows it.
struct RecordedStream {
  StreamMeta meta{};
  std::uint64_t frames = 0;  // recorded frames
  std::uint64_t end = 0;     // position after its last event
  FileNumber first_file = 0;
  FileNumber last_file = 0;
  bool open = false;   // a service is recording it now
  bool whole = false;  // all its events are there, from `open` to `end` or `abort`
};

// A directory of recordings, for reading. It may be written by a service meanwhile: refresh() shows
// the later state. Names the streams from the catalog, and makes the catalog anew if it is not
// that of the files. If the directory cannot be written, the catalog is in memory.
//
// open() raises the process's limit on descriptors as far as possible. A file that cannot be opened
// for a reason that may pass is an error, never a missing part.
//
// Confined to one thread, and so are its readers. It must outlive them. All functions throw
// std::system_error if the disk fails.
class Recordings {
 public:
  // The error is one line that names the path.
  static Result<std::unique_ptr<Recordings>, std::string> open(const std::string& path);
  ~Recordings();

  const Directory& directory() const;
  // Reads files that were sealed, added to or removed since. True if anything changed.
  bool refresh();

  // All streams, by number. Refers to this object, until the next refresh().
  const std::vector<RecordedStream>& streams();
  std::optional<RecordedStream> find(std::uint64_t number);
  // By their name; several streams may have had it.
  std::vector<RecordedStream> find(const std::string& name);

  // Files that cannot be read at all, each with a line why. They are left out.
  const std::vector<std::string>& problems() const;

  // The recording file, opened once and kept while a reader needs it, without a descriptor if it is
  // sealed. Null: it was deleted, or is damaged so that it is no recording file.
  std::shared_ptr<RecordingFile> file(FileNumber number);
  // All that can be read, by number.
  const std::vector<FileNumber>& files() const;

  // For readers of streams.

  // The same file as file(). The error is why its slices are missing: "deleted", "damaged: file 3".
  Result<std::shared_ptr<IndexedFile>, std::string> indexed(FileNumber number);
  // The files with parts of a stream, ascending. They may change only if changes() has.
  std::vector<FileNumber> files_of(std::uint64_t stream);
  std::uint64_t changes() const;
  // The run that wrote the file; empty if that is not known.
  std::string run_of(FileNumber file) const;
  // The run of the service that is recording now; empty if no service is.
  const std::string& live_run() const;

 private:
  struct Impl;
  explicit Recordings(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::recording
