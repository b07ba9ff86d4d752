// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/open_catalog.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "chunker/lengths.h"
#include "input/audio_file.h"
#include "training/catalogs/audio_catalog.h"
#include "training/catalogs/conversions.h"
#include "training/catalogs/index/audio_faults.h"
#include "training/catalogs/index/audio_index.h"
#include "training/catalogs/index/missing_file.h"
#include "training/catalogs/joined_catalog.h"
#include "training/catalogs/recorded/extent.h"
#include "training/catalogs/recorded/recorded_catalog.h"
#include "training/catalogs/recorded/recorded_index.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;
using Shared = std::shared_ptr<const Catalog>;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// True if the streams have the rate and the channels that the settings want.
bool matches(const FrameType& type, const CatalogSettings& settings) {
  return settings.rate.value_or(type.rate) == type.rate &&
         settings.channels.value_or(type.values) == type.values;
}

std::string type_text(double rate, std::uint32_t values) {
  return readable(rate) + " frames per second of " + std::to_string(values) + " values";
}

std::string type_text(const FrameType& type) {
  return type_text(type.rate, type.values) + " (" + std::string(name_of(type.element)) +
         (type.features ? ", features)" : ")");
}

std::string mismatch(const std::string& path, const FrameType& type,
                     const CatalogSettings& settings) {
  return path + ": has " + type_text(type.rate, type.values) + ", not " +
         type_text(settings.rate.value_or(type.rate), settings.channels.value_or(type.values));
}

FrameType type_of(const Index& index, const CatalogSettings& settings) {
  FrameType type = index.frame_type();
  type.element = settings.frames.value_or(index.is_deep() ? settings.deep : Element::s16);
  if (!settings.convert) return type;
  type.rate = settings.rate.value_or(type.rate);
  type.values = settings.channels.value_or(type.values);
  return type;
}

OpenedCatalog open_audio(const std::string& path, std::vector<std::string> files,
                         const CatalogSettings& settings) {
  const std::uint64_t checked =
      settings.check_all ? std::numeric_limits<std::uint64_t>::max() : most_checked;
  auto index = audio_index({.path = path,
                            .files = std::move(files),
                            .checked = checked,
                            .mixed = settings.convert,
                            .progress = settings.progress,
                            .skips = settings.skips});
  if (!index) return index.error();
  const FrameType type = type_of(index->index, settings);
  auto catalog = std::make_shared<AudioCatalog>(std::move(*index), type, settings.mapped);
  if (!matches(type, settings)) {
    const std::string first = catalog->path(0);
    return CatalogError{mismatch(first, type, settings) +
                        "; set convert = true, or convert all files: " +
                        conversion_command(first, settings.rate.value_or(type.rate),
                                           settings.channels.value_or(type.values))};
  }
  if (settings.convert) {
    const Conversions conversions = conversions_of(*catalog);
    if (!conversions.fault.empty()) return CatalogError{conversions.fault};
    if (settings.warn && !conversions.text.empty()) settings.warn(conversions.text);
  }
  const std::string base = catalog->base();
  return with_companions(std::move(catalog), settings.companions, base);
}

OpenedCatalog open_recordings(const std::string& path, const CatalogSettings& settings) {
  auto opened = recorded_index(path, settings.pipeline, settings.progress);
  if (!opened) return opened.error();
  std::optional<Index> index(std::move(*opened));
  if (!settings.extent.empty()) index = within(*index, path, settings.extent);
  if (!index) return CatalogError{path + ": has none of the streams of the checkpoint"};
  auto catalog = std::make_shared<RecordedCatalog>(
      std::move(*index), path,
      settings.cuts_events ? recording::Repeated::kept : recording::Repeated::left_out);
  const FrameType& type = catalog->frame_type();
  if (!matches(type, settings)) return CatalogError{mismatch(path, type, settings)};
  if (settings.frames.value_or(type.element) != type.element)
    return CatalogError{path + ": was recorded as " + std::string(name_of(type.element)) +
                        ", and recordings are not converted"};
  return with_companions(std::move(catalog), settings.companions, path);
}

}  // namespace

bool is_file_of_audio(std::string_view path) { return is_audio_name(path); }

OpenedCatalog open_catalog(const CatalogSettings& settings) {
  if (!settings.files.empty()) return open_audio({}, settings.files, settings);
  const std::string path = without_slashes(settings.path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return CatalogError{path + ": no such file or folder" + missing_file_hint(path)};
  if (!fs::is_directory(status) && is_audio_name(path)) return open_audio({}, {path}, settings);
  if (!fs::is_directory(status) && !is_manifest_name(path))
    return CatalogError{path +
                        ": must be a folder of audio files, an audio file, a directory of "
                        "recordings, or a manifest (.tsv, .csv, .jsonl, .ndjson, .json); " +
                        std::string(other_formats)};
  if (fs::is_directory(status) && has_recordings(path)) return open_recordings(path, settings);
  return open_audio(path, {}, settings);
}

OpenedCatalog join(std::vector<std::shared_ptr<const Catalog>> catalogs) {
  for (std::size_t i = 1; i < catalogs.size(); ++i) {
    const Catalog &first = *catalogs.front(), &other = *catalogs[i];
    if (!(other.frame_type() == first.frame_type()))
      return CatalogError{"catalog " + std::to_string(i + 1) + " has " +
                          type_text(other.frame_type()) + "; the first one has " +
                          type_text(first.frame_type())};
    if (!std::ranges::equal(other.companions(), first.companions()))
      return CatalogError{"catalog " + std::to_string(i + 1) +
                          " has other companions than the first one"};
  }
  return Shared(std::make_shared<JoinedCatalog>(std::move(catalogs)));
}

}  // namespace millrace::training
