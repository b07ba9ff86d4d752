// SPDX-License-Identifier: Apache-2.0
#include "training/keys/open_dataset.h"

#include <string>
#include <utility>
#include <vector>

#include "training/catalogs/open_catalog.h"

namespace millrace::training {
namespace {

std::optional<std::uint32_t> given(std::uint32_t ratio) {
  return ratio > 0 ? std::optional(ratio) : std::nullopt;
}

CatalogSettings settings_of(const DatasetKeys& keys, const std::string& path) {
  CatalogSettings settings;
  settings.path = path;
  settings.frames = keys.frames;
  settings.rate = keys.rate;
  settings.channels = keys.dim ? keys.dim : keys.channels;
  for (const CompanionKey& key : keys.companions)
    settings.companions.push_back({.name = key.name,
                                   .from = key.path.empty() ? key.field : key.path,
                                   .frames_per_entry = given(key.frames_per_entry),
                                   .entries_per_frame = given(key.entries_per_frame),
                                   .element = key.dtype});
  return settings;
}

// Names sources that only the caller can open.
Result<void, PlanError> check_sources(const DatasetKeys& keys) {
  if (keys.streams.empty())
    return PlanError{"streams",
                     "streams is missing: the path of a folder, a manifest or recordings"};
  for (const StreamsKey& one : keys.streams)
    if (one.path.empty() || one.path.starts_with("tcp://") || one.path.starts_with("unix:"))
      return PlanError{"streams", "streams = \"" + one.path +
                                      "\" must be the path of a folder, a "
                                      "manifest or recordings"};
  for (const CompanionKey& companion : keys.companions)
    if (companion.path.empty() && companion.field.empty())
      return PlanError{"companions", "companions." + companion.name + " needs a path or a field"};
  return {};
}

OpenedCatalog open_all(const DatasetKeys& keys, const CatalogProgress& progress) {
  std::vector<std::shared_ptr<const Catalog>> catalogs;
  for (const StreamsKey& one : keys.streams) {
    CatalogSettings settings = settings_of(keys, one.path);
    settings.progress = progress;
    const auto catalog = open_catalog(settings);
    if (!catalog) return catalog.error();
    catalogs.push_back(*catalog);
  }
  return catalogs.size() == 1 ? OpenedCatalog(catalogs.front()) : join(std::move(catalogs));
}

}  // namespace

Result<OpenedDataset, PlanError> open_dataset(const DatasetKeys& keys,
                                              const CatalogProgress& progress) {
  if (const auto checked = check_sources(keys); !checked) return checked.error();
  const auto catalog = open_all(keys, progress);
  if (!catalog) return PlanError{"streams", catalog.error().message};
  const FrameType& type = (*catalog)->frame_type();
  auto options = plan_options(keys, type);
  if (!options) return options.error();
  auto settings = loader_settings(keys, type);
  if (!settings) return settings.error();
  return OpenedDataset{*catalog, std::move(*options), std::move(*settings)};
}

}  // namespace millrace::training
