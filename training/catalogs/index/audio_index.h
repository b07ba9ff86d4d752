// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "training/catalogs/index/catalog_error.h"
#include "training/catalogs/index/catalog_progress.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The index of audio files.
struct AudioIndex {
  Index index;
  std::string path;  // the folder or the manifest; empty: files
  std::string base;  // the folder that its paths are relative to
};

// Called with a text that names files that are left out.
using SkippedFiles = std::function<void(const std::string& text)>;

struct AudioIndexSettings {
  std::string path;                  // a folder of audio files, or a manifest
  std::vector<std::string> files{};  // or these audio files; their index is kept nowhere
  // In larger catalogs, only the folders or the manifest are compared, not each file.
  std::uint64_t checked = 0;
  bool mixed = false;  // files may have several rates and numbers of channels
  CatalogProgress progress{};
  SkippedFiles skips{};
};

// Opens the index of a folder of audio files or of a manifest, or makes it. The name of a file that
// is given alone is that below the common parent of all files.
//
// The error names the first 20 files that cannot be used, and the number of all: those that cannot
// be read, and, unless `mixed`, those with another rate or other channels than most, with the
// command that converts them. The headers of the good files are kept: the next call reads only the
// others. With `skips`, bad files are left out, and it is called with this text. Throws
// std::system_error, and the exceptions of `progress`.
Result<AudioIndex, CatalogError> audio_index(const AudioIndexSettings& settings);

// For the error about a path without audio: where other formats are read.
constexpr std::string_view other_formats =
    "Python's millrace.catalogs has NpyFiles, Hdf5, Kaldi and LhotseCuts for other formats";

// True if the name of a file is that of a manifest.
bool is_manifest_name(std::string_view name);

}  // namespace millrace::training
