// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "transport/http/message.h"

namespace millrace {

// A file of a web page that the service serves.
struct PageFile {
  std::string_view path;  // in the URL: "/" or "/client.js"
  std::string_view type;  // Content-Type
  std::string_view tag;   // ETag: changes with the content
  std::string_view body;
};

// The answer to a GET of one of the files; nullopt for other paths. A browser may cache a file, but
// must revalidate it each time. The page may load nothing from other origins.
std::optional<HttpAnswer> find_file(std::span<const PageFile> files, const HttpQuery& query);

}  // namespace millrace
