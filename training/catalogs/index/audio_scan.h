// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "training/catalogs/index/catalog_progress.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The header of an audio file.
struct ScannedFile {
  std::uint64_t frames = 0;
  double rate = 0;
  std::uint32_t channels = 0;
  std::uint64_t place = 0;  // as IndexedStream::place
  bool deep = false;        // as IndexedStream::deep
  FileState file{};
  std::string error{};  // empty: the file can be read
};

// Reads the header. A file of a format without a length in the header is decoded.
ScannedFile scan_file(const std::string& path);

// The path of file `i`. Thread-safe.
using PathOf = std::function<std::string(std::size_t i)>;
// The header of file `i` in an older index, if the file is the same. Thread-safe.
using KnownFile = std::function<std::optional<ScannedFile>(std::size_t i)>;

// Reads the headers of files on several threads, except those that are known. `progress(done,
// total)` is called on this thread. If it or `known` throws, the scan stops and throws the same.
std::vector<ScannedFile> scan_files(std::size_t files, const PathOf& path, const KnownFile& known,
                                    const CatalogProgress& progress);

}  // namespace millrace::training
