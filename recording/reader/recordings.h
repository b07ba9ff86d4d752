// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/recording_file.h"
#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A stream of a directory, by the summaries of its files.
struct RecordedStream {
  StreamMeta meta{};
  std::uint64_t frames = 0;  // recorded frames
  std::uint64_t begin = 0;   // position at which it opened; 0 if its open is missing
  std::uint64_t end = 0;     // position after its last event
  FileNumber first_file = 0;
  FileNumber last_file = 0;
  bool open = false;      // a service is recording it now
  bool has_open = false;  // its open is there
  bool unbroken = false;  // its open and all events up to its last one are there
  bool whole = false;     // all its events are there, from `open` to `end` or `abort`
};

// A directory of recordings, for reading. It may be written by a service meanwhile: refresh() shows
// the later state.
//
// open() raises the process's limit on descriptors as far as possible. A file that cannot be opened
// for a reason that may pass is an error, never a missing part.
//
// Confined to one thread, and so are its readers. It must outlive them. All functions throw
// std::system_error if the disk fails.
class Recordings {
 public:
  enum class Summaries : std::uint8_t {
    read,     // those of all files are read, several at a time
    skipped,  // no stream is listed or found: for readers of streams whose files are known
  };

  // The error is one line that names the path.
  static Result<std::unique_ptr<Recordings>, std::string> open(
      const std::string& path, Summaries summaries = Summaries::read);

  const Directory& directory() const { return directory_; }
  // Compares the directory with what was read of it, and reads the files that were sealed, added
  // to or replaced since. True if anything changed. All that a service wrote before this call is
  // read.
  bool refresh();

  // All streams, by number. Refers to this object, until the next refresh().
  const std::vector<RecordedStream>& streams();
  std::optional<RecordedStream> find(std::uint64_t number) const;
  // By their name; several streams may have had it.
  std::vector<RecordedStream> find(const std::string& name);
  bool is_removed(std::uint64_t stream) const { return removed_.contains(stream); }

  // Files that cannot be read at all, each with a line why. They are left out.
  std::vector<std::string> problems() const;

  // For readers of streams.

  // The recording file, opened once and kept while a reader needs it, without a descriptor if it is
  // sealed. The error is why its slices are missing: "deleted", "damaged: file 3".
  Result<std::shared_ptr<RecordingFile>, std::string> file(FileNumber number);
  // The files with parts of a stream, ascending. They may change only if changes() has. If the
  // summaries were skipped: all from its first to its last one.
  std::vector<FileNumber> files_of(const RecordedStream& stream) const;
  std::uint64_t changes() const { return changes_; }
  // The run that wrote the file; empty if that is not known.
  std::string run_of(FileNumber file) const;
  // The run of the service that is recording now; empty if no service is.
  const std::string& live_run() const { return live_run_; }

 private:
  // A stream's part of one file.
  struct Part {
    StreamMeta meta{};
    FileNumber file = 0;
    StreamPart part{};
  };
  using Parts = std::vector<const Part*>;

  // A file of the directory. Sealed files are only replaced: one that differs in the first three
  // members is another file.
  struct File {
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t changed = 0;  // nanoseconds since 1970

    bool read = false;
    std::string problem{};  // a line why it cannot be read at all; empty if it can
    std::string run{};
    std::vector<Part> parts{};                  // by stream
    std::size_t chunks = 0;                     // in the file when its parts were read
    std::shared_ptr<RecordingFile> unsealed{};  // null if it is sealed
    std::weak_ptr<RecordingFile> opened{};      // sealed, for readers
  };

  Recordings(Directory directory, Summaries summaries);
  static std::uint64_t stream_of_part(const Part& part) { return part.part.stream; }
  static std::vector<Part> parts_in(std::vector<StreamPart> listed,
                                    std::map<std::uint16_t, StreamMeta> channels,
                                    FileNumber number);
  void compare();
  void read_files();
  std::optional<FileDescriptor> open_file(FileNumber number) const;
  bool read(FileNumber number, File& file) const;
  void read_on(FileNumber number, File& file);
  void keep_open(FileNumber number, const std::shared_ptr<RecordingFile>& file);
  Parts parts_of(std::uint64_t stream, FileNumber first, FileNumber last) const;
  RecordedStream stream_of(std::span<const Part* const> parts) const;

  Directory directory_;
  Summaries summaries_;
  std::map<FileNumber, File> files_;
  std::set<std::uint64_t> removed_;
  std::string live_run_;
  // Files that stay open although no reader needs them now. The last one used is the first.
  std::vector<std::pair<FileNumber, std::shared_ptr<RecordingFile>>> recent_;
  std::vector<RecordedStream> streams_;
  bool listed_ = false;
  bool changed_ = false;  // also by a refresh() that then failed
  std::uint64_t changes_ = 0;
};

}  // namespace millrace::recording
