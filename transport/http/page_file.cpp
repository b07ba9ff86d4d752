// SPDX-License-Identifier: Apache-2.0
#include "transport/http/page_file.h"

#include <algorithm>
#include <string>

namespace millrace {

std::optional<HttpAnswer> find_file(std::span<const PageFile> files, const HttpQuery& query) {
  const auto file = std::ranges::find(files, query.path(), &PageFile::path);
  if (file == files.end()) return std::nullopt;
  HttpAnswer answer{.type = std::string(file->type), .body = std::string(file->body)};
  answer.fields = {{"Content-Security-Policy", "default-src 'self'"},
                   {"X-Frame-Options", "DENY"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cache-Control", "no-cache"},
                   {"ETag", std::string(file->tag)}};
  const auto known = query.all("If-None-Match");
  if (std::ranges::find(known, file->tag) != known.end()) {
    answer.status = 304;
    answer.without_body = true;
  }
  return answer;
}

}  // namespace millrace
