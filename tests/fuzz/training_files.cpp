// SPDX-License-Identifier: Apache-2.0
// Files that training reads: the header of a .npy file, manifests, and companions as JSON. The
// first byte selects one of them.
#include <string>

#include "schemas/text.h"
#include "tests/fuzz/target.h"
#include "training/catalogs/arrays/companion_array.h"
#include "training/catalogs/arrays/npy_header.h"
#include "training/catalogs/index/manifest.h"

namespace millrace::training {
namespace {

using fuzz::require;

void check_npy(Bytes bytes) {
  const auto header = parse_npy_header(bytes);
  require(!header || header->begin <= bytes.size(), "the values begin in the file");
}

void check_manifest(std::string_view text, ManifestForm form) {
  const auto entries = parse_manifest(text, form);
  if (!entries) return;
  for (const ManifestEntry& entry : *entries) {
    require(!entry.path.empty() && !entry.name.empty(), "a file has a path and a name");
    require(entry.meta.empty() || is_json_object(entry.meta), "meta is a JSON object");
  }
}

void check_array(std::string_view text) {
  const auto array = parse_json_array(text, "label", {});
  if (!array) return;
  const CompanionArray::Shape& shape = (*array)->shape();
  const auto entries = (*array)->entries({.begin = 0, .count = shape.entries});
  require(entries.has_value(), "all entries can be read");
  require(entries->size() == shape.entries * shape.values * size_of(shape.element),
          "the entries have the shape");
}

}  // namespace
}  // namespace millrace::training

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace::training;
  if (size == 0) return 0;
  const std::string_view text = millrace::fuzz::text_of(bytes + 1, size - 1);
  switch (bytes[0] % 5) {
    case 0: check_npy(millrace::fuzz::bytes_of(bytes + 1, size - 1)); break;
    case 1: check_manifest(text, ManifestForm::tsv); break;
    case 2: check_manifest(text, ManifestForm::json_lines); break;
    case 3: check_array(text); break;
    default: check_manifest(text, ManifestForm::csv); break;
  }
  return 0;
}
