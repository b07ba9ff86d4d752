// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "schemas/json_text.h"
#include "training/catalogs/audio_catalog.h"
#include "training/catalogs/open_catalog.h"

namespace millrace::training {
namespace {

std::string line_of(const AudioCatalog& catalog, std::uint64_t stream) {
  const std::string path = std::filesystem::absolute(catalog.path(stream)).lexically_normal();
  std::string line = "{\"path\":";
  append_file_name(line, path);
  append_file_name(line += ",\"name\":", catalog.name(stream));
  const std::string meta = catalog.meta(stream);  // with `offset` and `duration`
  if (meta.size() > 2) line += ',' + meta.substr(1, meta.size() - 2);
  return line += "}\n";
}

}  // namespace

Result<void, CatalogError> write_manifest(const Catalog& catalog, const std::string& path,
                                          const std::vector<std::uint64_t>& left_out) {
  const auto* audio = dynamic_cast<const AudioCatalog*>(&catalog);
  if (audio == nullptr) return CatalogError{path + ": only audio files can be in a manifest"};
  std::ofstream out(path, std::ios::binary);
  for (std::uint64_t stream = 0; stream < catalog.size(); ++stream)
    if (!std::ranges::binary_search(left_out, stream)) out << line_of(*audio, stream);
  if (!out.flush()) return CatalogError{path + ": cannot be written"};
  return {};
}

}  // namespace millrace::training
