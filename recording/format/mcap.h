// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace millrace::recording::mcap {

// The records of MCAP (https://mcap.dev/spec) that recording files use, and the private one, the
// marker (docs/recording_format.md). A record is an opcode, the u64 length of its content, and the
// content. All numbers are little-endian. Pure.

inline constexpr std::array<std::uint8_t, 8> magic{0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};
inline constexpr std::size_t record_head = 9;
inline constexpr std::size_t message_head = 22;
inline constexpr std::string_view profile = "millrace";
inline constexpr int version = 1;  // the version of the profile

enum class Opcode : std::uint8_t {
  header = 0x01,
  footer = 0x02,
  schema = 0x03,
  channel = 0x04,
  message = 0x05,
  chunk = 0x06,
  message_index = 0x07,
  chunk_index = 0x08,
  attachment = 0x09,
  attachment_index = 0x0a,
  statistics = 0x0b,
  metadata = 0x0c,
  metadata_index = 0x0d,
  summary_offset = 0x0e,
  data_end = 0x0f,
  marker = 0x81,  // before each chunk
};

// A record in memory. `content` is a view.
struct Record {
  Opcode opcode{};
  Bytes content{};
};

// Keys and values, which are views, sorted by key.
using TextMap = std::vector<std::pair<std::string_view, std::string_view>>;
std::optional<std::string_view> value_of(const TextMap& map, std::string_view key);

// Reads records and their fields from front to back. After a read beyond the end, ok() is false and
// all values are 0 or empty. The same holds after a map with a key that occurs twice. Never
// allocates by a length that was read.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : bytes_(bytes) {}

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  Bytes bytes(std::uint64_t length);
  std::string_view text();  // u32 length, then the bytes
  TextMap text_map();       // u32 bytes of the whole map, then its pairs
  // nullopt: no whole record follows; then nothing is read, and ok() does not change.
  std::optional<Record> record();

  bool ok() const { return ok_; }
  std::size_t offset() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// Appends fields and records to a buffer of bytes.
class Builder {
 public:
  explicit Builder(std::vector<std::byte>& into) : into_(into) {}

  void u8(std::uint8_t value);
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void bytes(Bytes value);
  void text(std::string_view value);
  void text_map(const std::map<std::string, std::string>& value);
  // Begins a record; end() fills in its length. Returns the place for end().
  std::size_t begin(Opcode opcode);
  void end(std::size_t begun);

 private:
  std::vector<std::byte>& into_;
};

// The marker: the 16 random bytes of the file, the chunk's number and length, and a CRC-32 of these
// 32 bytes. It is followed by 0 to 7 zero bytes, so that the messages of the chunk are aligned.
struct Marker {
  std::array<std::byte, 16> id{};
  std::uint64_t number = 0;  // the chunk's in the file, from 0
  std::uint64_t length = 0;  // bytes of the Chunk record that follows
};
inline constexpr std::size_t marker_content = 36, most_padding = 7;
void append(std::vector<std::byte>& into, const Marker& marker, std::size_t padding);
// nullopt if this is not a marker of the file, or its CRC is wrong.
std::optional<Marker> marker_from(Bytes content, const std::array<std::byte, 16>& id);

}  // namespace millrace::recording::mcap
