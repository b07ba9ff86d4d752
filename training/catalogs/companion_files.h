// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "training/catalog.h"
#include "training/catalogs/companion_array.h"
#include "training/catalogs/open_catalog.h"

namespace millrace::training {

// Finds the companion of a stream: a file in a folder, or a member of the stream's `meta`.
// Immutable after construction, and thread-safe.
class CompanionFiles {
 public:
  // `base`: the folder that paths in `meta` are relative to. The error is for a source that is
  // neither a folder nor a member of `meta`. `catalog` must outlive it.
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

  OpenedArray open_member(std::uint64_t stream) const;
  OpenedArray open_file(const std::string& path) const;
  std::string file_of(std::uint64_t stream) const;

  const Catalog* catalog_;
  CompanionSource source_;
  std::string base_;
  bool member_;
};

}  // namespace millrace::training
