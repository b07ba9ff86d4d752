// SPDX-License-Identifier: Apache-2.0
#include "recording/format/file_start.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "recording/format/file_head.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

using mcap::Cursor;
using mcap::Opcode;

bool is_prefix(Bytes part, Bytes whole) {
  return part.size() <= whole.size() && std::ranges::equal(part, whole.first(part.size()));
}

bool is_text(std::string_view text) {
  return text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"'; });
}

Result<FileHead, HeadError> head_of(Bytes content) {
  Cursor cursor(content);
  if (cursor.text() != mcap::profile) return HeadError{};
  auto metadata = cursor.text_map();
  if (!cursor.ok()) return HeadError{};
  return head_from(std::move(metadata));
}

// The head at any place: its checksum shows that this is a head.
std::optional<FileHead> search_head(Bytes first) {
  std::vector<std::byte> name;
  mcap::Builder(name).text(mcap::profile);
  for (auto rest = first;;) {
    const auto found = std::search(rest.begin(), rest.end(), name.begin(), name.end());
    if (found == rest.end()) return std::nullopt;
    const auto at = static_cast<std::size_t>(found - rest.begin());
    if (auto head = head_of(rest.subspan(at))) return *head;
    rest = rest.subspan(at + 1);
  }
}

// Nothing follows the fields: otherwise the length of the record is damaged, and it contains
// chunks.
bool is_schema(const mcap::Record& record) {
  if (record.opcode != Opcode::schema) return false;
  Cursor cursor(record.content);
  return cursor.u16() == 1 && cursor.text() == "millrace.recorded.Slice" &&
         cursor.text() == "flatbuffer" && !cursor.bytes(cursor.u32()).empty() && cursor.left() == 0;
}

std::string later_format(int format) {
  return "has the format " + std::to_string(format) +
         ", but this version of millrace reads formats up to " + std::to_string(mcap::version);
}

std::string other_profile(const std::string& profile) {
  if (profile.empty() || !is_text(profile)) return "has another profile than \"millrace\"";
  return "has the profile \"" + profile + "\", not \"millrace\"";
}

// The records that are read one after the other, as far as they are good.
struct Records {
  bool magic = false;
  std::optional<std::string> profile{};
  Result<FileHead, HeadError> head = HeadError{};
  bool schema = false;
  std::uint64_t metadata_offset = 0, metadata_end = 0, end = 0;
};

Records read_records(Bytes first) {
  Records read;
  const auto magic = std::as_bytes(std::span(mcap::magic));
  read.magic = is_prefix(magic, first);
  if (first.size() < magic.size()) return read;
  Cursor cursor(first.subspan(magic.size()));
  const auto header = cursor.record();
  if (!header || header->opcode != Opcode::header) return read;
  Cursor fields(header->content);
  const std::string_view profile = fields.text();
  fields.text();  // library
  if (fields.ok() && fields.left() == 0) read.profile = profile;
  read.metadata_offset = magic.size() + cursor.offset();
  const auto metadata = cursor.record();
  read.metadata_end = magic.size() + cursor.offset();
  if (!metadata || metadata->opcode != Opcode::metadata) return read;
  read.head = head_of(metadata->content);
  const auto schema = cursor.record();
  read.schema = schema && is_schema(*schema);
  if (read.schema) read.end = magic.size() + cursor.offset();
  return read;
}

// A file that ends before the end of its first records. A part of them was written, or none.
bool is_unfinished(Bytes first, const Records& read) {
  if (first.size() >= start_bytes || read.schema) return false;
  // After a loss of power, a file can have its size, but not yet its bytes.
  if (std::ranges::all_of(first, [](std::byte byte) { return byte == std::byte{}; })) return true;
  const auto magic = std::as_bytes(std::span(mcap::magic));
  if (first.size() < magic.size()) return is_prefix(first, magic);
  if (!read.magic) return false;
  for (auto rest = first.subspan(magic.size()); !rest.empty();) {
    if (rest.size() < mcap::record_head) return true;
    const std::uint64_t length = Cursor(rest.subspan(1)).u64();
    if (length > rest.size() - mcap::record_head) return length < start_bytes;
    rest = rest.subspan(mcap::record_head + length);
  }
  return true;
}

}  // namespace

std::optional<FileId> id_from(const std::string& hex) {
  FileId id{};
  if (hex.size() != 2 * id.size()) return std::nullopt;
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; i < id.size(); ++i) {
    const auto high = digits.find(hex[2 * i]), low = digits.find(hex[2 * i + 1]);
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    id[i] = static_cast<std::byte>(high << 4 | low);
  }
  return id;
}

std::string to_hex(const FileId& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const std::byte byte : id) {
    hex += digits[std::to_integer<std::size_t>(byte >> 4)];
    hex += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return hex;
}

Result<FileStart, std::string> read_start(Bytes first) {
  const Records read = read_records(first);
  const int format = read.head ? 0 : read.head.error().format;
  if (format > mcap::version) return later_format(format);

  FileStart start;
  start.complete = true;
  start.end = read.end;
  if (read.head) start.head = *read.head;
  if (!start.head) start.head = search_head(first);
  if (read.magic && read.profile == mcap::profile && read.head && read.schema) {
    start.metadata_offset = read.metadata_offset;
    start.metadata_bytes = read.metadata_end - read.metadata_offset;
    return start;
  }

  start.complete = !is_unfinished(first, read);
  if (start.head) {
    start.damage = "the first records of the file are damaged";
  } else {
    if (!read.magic && start.complete) return std::string("is not an MCAP file");
    if (read.profile && read.profile != mcap::profile) return other_profile(*read.profile);
    if (!read.profile && start.complete) return other_profile("");
    start.damage = "the metadata of the file is damaged";
  }
  start.end = std::max<std::uint64_t>(start.end, mcap::magic.size());
  return start;
}

}  // namespace millrace::recording
