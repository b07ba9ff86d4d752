// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "recording/files/directory.h"
#include "recording/format/stream_meta.h"
#include "recording/reader/database.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A sealed recording file, as the catalog has read it. A file that differs in one of these is
// another file: sealed files are only replaced.
struct CatalogFile {
  FileNumber number = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds since 1970
  std::string run{};         // FileHead::run
  bool operator==(const CatalogFile&) const = default;
};

// A stream's part of one recording file, with the metadata of its channel.
struct CatalogPart {
  StreamMeta meta{};
  FileNumber file = 0;
  StreamPart part{};
};

// The parts of all streams in all sealed recording files of a directory: `catalog.sqlite`, a cache.
// A catalog that is missing, has another version, is damaged, or is that of another directory is
// replaced by an empty one. If the file cannot be written, the catalog is in memory.
//
// Several processes may use the file. A change by another process shows at once: it can only bring
// the content closer to the files. Functions without another comment throw DatabaseError. Confined
// to one thread.
class Catalog {
 public:
  // `inode`: of the directory.
  static Catalog open(const std::string& directory, std::uint64_t inode);
  static Catalog in_memory();
  // Deletes the file. No error if that fails.
  static void remove(const std::string& directory);

  // All files, by number.
  std::vector<CatalogFile> files();
  // Calls visit for all parts, by stream and file. The argument may be moved from.
  void each(const std::function<void(CatalogPart&)>& visit);
  // The parts of a stream, by file.
  std::vector<CatalogPart> of(std::uint64_t stream);

  // A change: begin(), any number of forget() and put(), then commit(). begin() waits for the
  // change of another process.
  void begin();
  void forget(FileNumber number);
  void put(const CatalogFile& file, const std::map<std::uint16_t, StreamMeta>& channels,
           const std::vector<StreamPart>& parts);
  void commit();

 private:
  // The values that the streams of a pipeline have in common are stored once, with a number.
  using Formats = std::map<std::int64_t, StreamMeta>;
  using FormatKey =
      std::tuple<std::string, std::string, Element, std::uint32_t, double, bool, std::string>;
  using FormatNumbers = std::map<FormatKey, std::int64_t>;

  explicit Catalog(Database database);
  Formats read_formats();
  std::int64_t format_of(const StreamMeta& meta, FormatNumbers& known);
  CatalogPart part_of(Statement& row, const Formats& formats);

  Database database_;
};

}  // namespace millrace::recording
