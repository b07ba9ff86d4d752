// SPDX-License-Identifier: Apache-2.0
#include "recording/format/file_head.h"

#include <charconv>
#include <cstdio>
#include <span>

#include "recording/format/checksums.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

using Metadata = std::map<std::string, std::string>;

// Requires: the metadata is sorted by key.
std::string checksum(const auto& metadata) {
  std::uint32_t crc = 0;
  const auto add = [&crc](std::string_view text) {
    crc = crc32(std::as_bytes(std::span(text)), crc);
    crc = crc32(std::as_bytes(std::span("", 1)), crc);
  };
  for (const auto& [key, value] : metadata) {
    add(key);
    add(value);
  }
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

template <class Number>
bool read(const mcap::TextMap& metadata, const char* key, Number& into) {
  const std::string_view text = mcap::value_of(metadata, key).value_or("");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_id(const mcap::TextMap& metadata, const char* key, std::string& into) {
  into = mcap::value_of(metadata, key).value_or("");
  return into.size() == 32 && into.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Metadata to_metadata(const FileHead& head) {
  Metadata metadata{{"format", std::to_string(mcap::version)},
                    {"file", std::to_string(head.file)},
                    {"run", head.run},
                    {"id", head.id},
                    {"first_stream", std::to_string(head.first_stream)},
                    {"created", std::to_string(head.created)}};
  const std::string crc = checksum(metadata);
  metadata["crc"] = crc;
  return metadata;
}

Result<FileHead, HeadError> head_from(mcap::TextMap metadata) {
  const auto crc = mcap::value_of(metadata, "crc");
  std::erase_if(metadata, [](const auto& pair) { return pair.first == "crc"; });
  if (crc != checksum(metadata)) return HeadError{};
  int format = 0;
  if (!read(metadata, "format", format) || format < 1) return HeadError{};
  if (format > mcap::version) return HeadError{format};
  FileHead head;
  const bool good = read(metadata, "file", head.file) && read_id(metadata, "run", head.run) &&
                    read_id(metadata, "id", head.id) &&
                    read(metadata, "first_stream", head.first_stream) &&
                    read(metadata, "created", head.created);
  if (!good) return HeadError{};
  return head;
}

}  // namespace millrace::recording
