// SPDX-License-Identifier: Apache-2.0
#include "training/keys/open_dataset.h"

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

OpenedCatalog open_all(const DatasetKeys& keys, const CatalogProgress& progress) {
  std::vector<std::shared_ptr<const Catalog>> catalogs;
  for (const StreamsKey& one : keys.streams) {
    const auto catalog = open_catalog({.path = one.path,
                                       .frames = keys.frames,
                                       .rate = keys.rate,
                                       .channels = keys.dim ? keys.dim : keys.channels,
                                       .companions = keys.companions,
                                       .progress = progress});
    if (!catalog) return catalog.error();
    catalogs.push_back(*catalog);
  }
  return catalogs.size() == 1 ? OpenedCatalog(catalogs.front()) : join(std::move(catalogs));
}

}  // namespace

Result<OpenedDataset, PlanError> open_dataset(const DatasetKeys& keys,
                                              const CatalogProgress& progress) {
  if (const auto checked = check_sources(keys); !checked) return checked.error();
  const auto all = open_all(keys, progress);
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
