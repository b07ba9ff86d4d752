// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "training/catalogs/index/catalog_error.h"

namespace millrace::training {

// An audio file of a manifest.
struct ManifestEntry {
  std::string path{};  // as written: absolute, or relative to the manifest
  std::string name{};
  std::string meta{};  // the other fields as a JSON object; empty if there are none
  // The stream is this part of the file, in seconds. No duration: up to its end.
  double offset = 0;
  std::optional<double> duration{};
};

enum class ManifestForm { tsv, csv, json_lines };

// Reads a manifest. TSV and CSV: the first line has the names of the fields, and values are
// strings, except `offset` and `duration`. CSV is that of RFC 4180: values may be in quotes. JSON
// lines: an object per line. The field `path` or `audio_filepath` is the file, and `name` the name
// of the stream; default: the path without its extension, and "-" with `offset` if that is not 0.
// `offset` and `duration` are the part of the file. Other fields that would choose a part of it,
// such as `start` or `channel` with a number or a time, are errors. Empty lines and a byte order
// mark are left out. Paths and names need not be UTF-8; in JSON, \udc80 to \udcff are bytes, as
// Python writes them. The error is a sentence with the number of the line.
Result<std::vector<ManifestEntry>, CatalogError> parse_manifest(std::string_view text,
                                                                ManifestForm form);

}  // namespace millrace::training
