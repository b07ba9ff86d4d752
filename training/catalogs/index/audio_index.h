// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "training/catalogs/index/catalog_error.h"
#include "training/catalogs/index/catalog_progress.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The index of audio files.
struct AudioIndex {
  Index index;
  std::string path;  // the folder or the manifest
  std::string base;  // the folder that its paths are relative to
};

// Opens the index of a folder of audio files or of a manifest, or makes it. `checked`: in larger
// catalogs, only the folders or the manifest are compared, not each file.
//
// The error names the first 20 files that cannot be used, and the number of all: those that cannot
// be read, and those with another rate or other channels than most, with the command that converts
// them. The headers of the good files are kept: the next call reads only the others. With `skips`,
// bad files are left out, and it is called with this text. Throws std::system_error, and the
// exceptions of `progress`.
using SkippedFiles = std::function<void(const std::string& text)>;
Result<AudioIndex, CatalogError> audio_index(const std::string& path, std::uint64_t checked,
                                             const CatalogProgress& progress,
                                             const SkippedFiles& skips = {});

// For the error about a path without audio: where other formats are read.
constexpr std::string_view other_formats =
    "Python's millrace.catalogs has NpyFiles, Hdf5, Kaldi and LhotseCuts for other formats";

// True if the name of a file is that of a manifest.
bool is_manifest_name(std::string_view name);

}  // namespace millrace::training
