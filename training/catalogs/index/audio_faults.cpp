// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/audio_faults.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <ranges>
#include <utility>

#include "schemas/text.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

constexpr double rounding = 0.05;  // seconds

}  // namespace

std::string format_text(double rate, std::uint32_t channels) {
  return std::to_string(static_cast<std::uint64_t>(rate)) + " Hz and " + std::to_string(channels) +
         (channels == 1 ? " channel" : " channels");
}

std::optional<FilePart> part_of(const ManifestEntry& entry, const ScannedFile& file) {
  const double frames = static_cast<double>(file.frames), slack = rounding * file.rate;
  const double begin = std::round(entry.offset * file.rate);
  if (begin > frames || (begin > 0 && begin == frames)) return std::nullopt;
  const auto before = static_cast<std::uint64_t>(begin);
  const FilePart rest{.before = before, .frames = file.frames - before};
  if (!entry.duration) return rest;
  const double end = std::round((entry.offset + *entry.duration) * file.rate);
  if (end > frames + slack || end == begin) return std::nullopt;
  // Most manifests have the duration of the whole file, rounded.
  if (end >= frames || (before == 0 && end > frames - slack / 5)) return rest;
  return FilePart{.before = before, .frames = static_cast<std::uint64_t>(end) - before};
}

AudioFaults::AudioFaults(const std::vector<ManifestEntry>& entries, const PathOf& path,
                         const std::vector<ScannedFile>& files, bool mixed)
    : files_(files.size()) {
  choose_format(path, files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ScannedFile& file = files[i];
    std::string reason = file.error;
    if (reason.empty() && !mixed && (file.rate != rate_ || file.channels != channels_))
      reason = "has " + format_text(file.rate, file.channels) + ", but " + usual_ + " has " +
               format_text(rate_, channels_) + "; set convert = true, or convert it: " +
               conversion_command(path(i), rate_, channels_);
    if (reason.empty() && !part_of(entries[i], file))
      reason = "does not have the part of the stream \"" + entries[i].name + "\": it has " +
               std::to_string(file.frames) + " frames";
    if (!reason.empty()) reasons_[i] = path(i) + ": " + reason;
  }
}

// The first one of those that most files have.
void AudioFaults::choose_format(const PathOf& path, const std::vector<ScannedFile>& files) {
  std::map<std::pair<double, std::uint32_t>, std::size_t> counts;
  for (const ScannedFile& file : files)
    if (file.error.empty()) ++counts[{file.rate, file.channels}];
  std::size_t most = 0;
  std::optional<std::size_t> usual;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].error.empty()) continue;
    const std::size_t count = counts[{files[i].rate, files[i].channels}];
    if (count <= most) continue;
    most = count;
    rate_ = files[i].rate;
    channels_ = files[i].channels;
    usual = i;
  }
  if (usual) usual_ = path(*usual);
}

std::string AudioFaults::text() const {
  const std::size_t bad = reasons_.size();
  if (bad == 1) return reasons_.begin()->second;
  std::string text =
      std::to_string(bad) + " of " + std::to_string(files_) + " files cannot be used:";
  for (const auto& [file, reason] : reasons_ | std::views::take(most_listed))
    text += "\n  " + reason;
  if (bad > most_listed) text += "\n  and " + std::to_string(bad - most_listed) + " more";
  return text;
}

std::string conversion_command(const std::string& path, double rate, std::uint32_t channels) {
  const fs::path file(path);
  const auto quoted = [](const fs::path& one) { return shell_path(one.native()); };
  const fs::path converted = file.parent_path() / (".converted" + file.extension().native());
  const bool is_pattern = path.find_first_of("*?[]{}~") != std::string::npos;
  return std::string("sox ") + (is_pattern ? "--no-glob " : "") + quoted(file) + " -r " +
         std::to_string(static_cast<std::uint64_t>(rate)) + " -c " + std::to_string(channels) +
         " " + quoted(converted) + " && mv " + quoted(converted) + " " + quoted(file);
}

}  // namespace millrace::training
