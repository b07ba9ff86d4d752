// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
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
// The error names the first file that cannot be read, or that has another rate or other channels
// than the first one, and the command that converts it. Throws std::system_error, and the
// exceptions of `progress`.
Result<AudioIndex, CatalogError> audio_index(const std::string& path, std::uint64_t checked,
                                             const CatalogProgress& progress);

// True if the name of a file is that of a manifest.
bool is_manifest_name(std::string_view name);

// The command that converts an audio file in place.
std::string conversion_command(const std::string& path, double rate, std::uint32_t channels);

}  // namespace millrace::training
