// SPDX-License-Identifier: Apache-2.0
#include "training/keys/open_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "training/catalogs/open_catalog.h"

namespace millrace::training {
namespace {

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
  for (const CompanionSource& companion : keys.companions)
    if (companion.from.empty())
      return PlanError{"companions", "companions." + companion.name + " needs a path or a field"};
  return {};
}

OpenedCatalog joined(std::vector<std::shared_ptr<const Catalog>> catalogs) {
  return catalogs.size() == 1 ? OpenedCatalog(catalogs.front()) : join(std::move(catalogs));
}

OpenedCatalog open_all(const DatasetKeys& keys, const CatalogProgress& progress,
                       const CatalogWarning& warn) {
  CatalogSettings settings{.path = {},
                           .frames = keys.frames,
                           .deep = deep_frames(keys),
                           .rate = keys.rate,
                           .channels = keys.dim ? keys.dim : keys.channels,
                           .convert = keys.convert,
                           .mapped = keys.mapped,
                           .cuts_events = cuts_events(keys),
                           .companions = keys.companions,
                           .progress = progress,
                           .warn = warn};
  const auto is_file = [](const StreamsKey& one) {
    return one.frequency == 1 && is_file_of_audio(one.path);
  };
  if (std::ranges::all_of(keys.streams, is_file)) {
    for (const StreamsKey& one : keys.streams) settings.files.push_back(one.path);
    return open_catalog(settings);
  }
  std::vector<std::shared_ptr<const Catalog>> catalogs(keys.streams.size());
  const auto open = [&](std::size_t i) -> OpenedCatalog {
    settings.path = keys.streams[i].path;
    return open_catalog(settings);
  };
  for (std::size_t i = 0; i < catalogs.size(); ++i) {
    const auto opened = open(i);
    if (!opened) return opened.error();
    catalogs[i] = *opened;
  }
  // All have one type of frames: if those of one are not s16, the others are opened again.
  const auto is_s16 = [](const auto& one) { return one->frame_type().element == Element::s16; };
  const auto deep = std::ranges::find_if_not(catalogs, is_s16);
  if (settings.frames || deep == catalogs.end()) return joined(std::move(catalogs));
  settings.frames = (*deep)->frame_type().element;
  settings.warn = {};
  for (std::size_t i = 0; i < catalogs.size(); ++i) {
    if (!is_s16(catalogs[i])) continue;
    const auto opened = open(i);
    if (!opened) return opened.error();
    catalogs[i] = *opened;
  }
  return joined(std::move(catalogs));
}

}  // namespace

Result<OpenedDataset, PlanError> open_dataset(const DatasetKeys& keys,
                                              const CatalogProgress& progress,
                                              const CatalogWarning& warn) {
  if (const auto checked = check_sources(keys); !checked) return checked.error();
  const auto all = open_all(keys, progress, warn);
  if (!all) return PlanError{"streams", all.error().message};
  const FrameType& type = (*all)->frame_type();
  const auto selection = selection_of(keys, type);
  if (!selection) return selection.error();
  const auto catalog = select_streams(*all, *selection);
  if (!catalog) return catalog.error();
  auto options = plan_options(keys, type);
  if (!options) return options.error();
  auto settings = loader_settings(keys, type, options->chunk);
  if (!settings) return settings.error();
  return OpenedDataset{*catalog, std::move(*options), std::move(*settings)};
}

}  // namespace millrace::training
