// SPDX-License-Identifier: Apache-2.0
#include "recording/format/mcap.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "recording/format/checksums.h"

namespace millrace::recording::mcap {
namespace {

// MCAP is little-endian, and so are all machines that this code is built for.
template <class Number>
Number number_of(Bytes bytes) {
  Number number = 0;
  if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

template <class Number>
void append_number(std::vector<std::byte>& into, Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  into.insert(into.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::optional<std::string_view> value_of(const TextMap& map, std::string_view key) {
  const auto found = std::ranges::lower_bound(map, key, {}, &TextMap::value_type::first);
  if (found == map.end() || found->first != key) return std::nullopt;
  return found->second;
}

std::uint8_t Cursor::u8() { return number_of<std::uint8_t>(bytes(1)); }
std::uint16_t Cursor::u16() { return number_of<std::uint16_t>(bytes(2)); }
std::uint32_t Cursor::u32() { return number_of<std::uint32_t>(bytes(4)); }
std::uint64_t Cursor::u64() { return number_of<std::uint64_t>(bytes(8)); }

Bytes Cursor::bytes(std::uint64_t length) {
  ok_ = ok_ && length <= left();
  if (!ok_) return {};
  const Bytes read = bytes_.subspan(at_, static_cast<std::size_t>(length));
  at_ += read.size();
  return read;
}

std::string_view Cursor::text() {
  const Bytes read = bytes(u32());
  return {reinterpret_cast<const char*>(read.data()), read.size()};
}

TextMap Cursor::text_map() {
  Cursor pairs(bytes(u32()));
  TextMap map;
  map.reserve(16);  // a channel has at most ten pairs
  while (pairs.ok() && pairs.left() > 0) {
    const std::string_view key = pairs.text();
    map.emplace_back(key, pairs.text());
  }
  if (!std::ranges::is_sorted(map)) std::ranges::sort(map);
  // A key that occurs twice has no meaning.
  const auto twice = std::ranges::adjacent_find(map, {}, &TextMap::value_type::first);
  ok_ = ok_ && pairs.ok() && twice == map.end();
  if (!ok_) map.clear();
  return map;
}

std::optional<Record> Cursor::record() {
  Cursor head = *this;
  const auto opcode = static_cast<Opcode>(head.u8());
  const Bytes content = head.bytes(head.u64());
  if (!head.ok()) return std::nullopt;
  *this = head;
  return Record{opcode, content};
}

void Builder::u8(std::uint8_t value) { append_number(into_, value); }
void Builder::u16(std::uint16_t value) { append_number(into_, value); }
void Builder::u32(std::uint32_t value) { append_number(into_, value); }
void Builder::u64(std::uint64_t value) { append_number(into_, value); }
void Builder::bytes(Bytes value) { into_.insert(into_.end(), value.begin(), value.end()); }

void Builder::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes(std::as_bytes(std::span(value)));
}

void Builder::text_map(const std::map<std::string, std::string>& value) {
  u32(0);
  const std::size_t begun = into_.size();
  for (const auto& [key, mapped] : value) {
    text(key);
    text(mapped);
  }
  const auto length = static_cast<std::uint32_t>(into_.size() - begun);
  std::memcpy(into_.data() + begun - sizeof length, &length, sizeof length);
}

std::size_t Builder::begin(Opcode opcode) {
  u8(static_cast<std::uint8_t>(opcode));
  u64(0);
  return into_.size();
}

void Builder::end(std::size_t begun) {
  const std::uint64_t length = into_.size() - begun;
  std::memcpy(into_.data() + begun - sizeof length, &length, sizeof length);
}

void append(std::vector<std::byte>& into, const Marker& marker, std::size_t padding) {
  Builder builder(into);
  const std::size_t begun = builder.begin(Opcode::marker);
  builder.bytes(marker.id);
  builder.u64(marker.number);
  builder.u64(marker.length);
  builder.u32(crc32(Bytes(into).subspan(begun)));
  into.resize(into.size() + padding);
  builder.end(begun);
}

std::optional<Marker> marker_from(Bytes content, const std::array<std::byte, 16>& id) {
  if (content.size() < marker_content || content.size() > marker_content + most_padding)
    return std::nullopt;
  Cursor cursor(content);
  Marker marker;
  std::ranges::copy(cursor.bytes(marker.id.size()), marker.id.begin());
  marker.number = cursor.u64();
  marker.length = cursor.u64();
  const std::uint32_t crc = crc32(content.first(cursor.offset()));
  if (cursor.u32() != crc || marker.id != id) return std::nullopt;
  return marker;
}

}  // namespace millrace::recording::mcap
