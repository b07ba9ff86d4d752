// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "training/catalogs/index/audio_scan.h"
#include "training/catalogs/index/manifest.h"

namespace millrace::training {

// The part of a file that a stream is, in frames.
struct FilePart {
  std::uint64_t before = 0;  // frames of the file before it
  std::uint64_t frames = 0;
};

// nullopt: the file ends before the part, or the part is shorter than a frame. A part that ends
// within 50 ms of the end of the file ends there: manifests round their seconds.
std::optional<FilePart> part_of(const ManifestEntry& entry, const ScannedFile& file);

// The files of a catalog that cannot be used: they cannot be read, end before their part, or,
// unless files may be mixed, have another rate or other channels than most of the files. Immutable.
class AudioFaults {
 public:
  static constexpr std::size_t most_listed = 20;

  // Requires: at least one file, and vectors of equal sizes.
  AudioFaults(const std::vector<ManifestEntry>& entries, const PathOf& path,
              const std::vector<ScannedFile>& files, bool mixed);

  bool is_good(std::size_t file) const { return !reasons_.contains(file); }
  bool any() const { return !reasons_.empty(); }
  std::size_t good() const { return files_ - reasons_.size(); }
  // Those of most of the good files.
  double rate() const { return rate_; }
  std::uint32_t channels() const { return channels_; }

  // Names the files. Requires: any().
  std::string text() const;

 private:
  void choose_format(const PathOf& path, const std::vector<ScannedFile>& files);

  double rate_ = 1;
  std::uint32_t channels_ = 1;
  std::string usual_;  // the first file of this format
  std::size_t files_;
  std::map<std::size_t, std::string> reasons_;  // the bad files, each with its path
};

// "16000 Hz and 1 channel"
std::string format_text(double rate, std::uint32_t channels);

// The command that converts an audio file in place.
std::string conversion_command(const std::string& path, double rate, std::uint32_t channels);

}  // namespace millrace::training
