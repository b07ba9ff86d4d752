// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "training/catalogs/arrays/companion_array.h"
#include "training/catalogs/open_catalog.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// Finds the companion of a stream: a file in a folder, or a member of the stream's `meta`. In a
// folder, it is found by the stream's name. If names are absolute paths, or lead out of
// the folder, the part below their common parent counts; if the first stream has no such file, only
// the last part. Immutable after construction, and thread-safe.
class CompanionFiles {
 public:
  // `base`: the folder that paths in `meta` are relative to. The error is for a source that is
  // neither a folder nor a member of `meta`, and for a file that two streams would share. `catalog`
  // must outlive it.
  static Result<CompanionFiles, CatalogError> find(const Catalog& catalog,
                                                   const CompanionSource& source,
                                                   const std::string& base);

  // The companion with any number of entries.
  OpenedArray open(std::uint64_t stream) const;
  // The same, if it has the format, and the entries of the stream.
  OpenedArray open(std::uint64_t stream, const CompanionFormat& format) const;

  const CompanionSource& source() const { return source_; }
  // The file or the member of a stream, for errors.
  std::string label(std::uint64_t stream) const;

 private:
  CompanionFiles(const Catalog& catalog, const CompanionSource& source, std::string base,
                 bool member)
      : catalog_(&catalog), source_(source), base_(std::move(base)), member_(member) {}

  Result<void, CatalogError> check_unique() const;
  void choose_layout();
  OpenedArray open_member(std::uint64_t stream) const;
  OpenedArray open_file(const std::string& path) const;
  std::string file_of(std::uint64_t stream) const;
  std::string path_of(const std::string& name) const;

  const Catalog* catalog_;
  CompanionSource source_;
  std::string base_;
  bool member_;
  std::size_t common_ = 0;  // bytes of the common parent of the names; 0: names are used whole
  bool last_part_ = false;  // only the last parts of names count
};

// The format of a companion: from the settings, the first companions, and their lengths. Opens as
// few files as are sufficient, and at most 1000. The error names the file.
Result<CompanionFormat, CatalogError> find_format(const Catalog& catalog,
                                                  const CompanionFiles& files);

}  // namespace millrace::training
