// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace millrace::training::index_records {

// The records of an index file, in this order: Head, StreamRecords, EventRecords, PartRecords,
// WatchedRecords, and the text that they refer to. In the byte order of the machine: an index is a
// cache, and one of another byte order has another magic.

inline constexpr std::uint64_t magic = 0x31'78'65'64'6e'69'6c'6d;  // "mlindex1"

inline constexpr std::uint8_t mixed = 1, deep = 2;  // bits of Head::formats

struct Head {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t checksum = 0;  // CRC-32C of all bytes after this field
  std::uint64_t bytes = 0;     // size of the file
  std::uint64_t streams = 0;
  std::uint64_t events = 0;
  std::uint64_t parts = 0;
  std::uint64_t watched = 0;
  std::uint64_t text = 0;  // bytes
  std::uint64_t digest = 0;
  double rate = 0;
  std::uint32_t values = 0;
  std::uint8_t element = 0;
  std::uint8_t features = 0;
  std::uint8_t settled = 0;
  std::uint8_t formats = 0;
};

struct StreamRecord {
  std::uint64_t frames = 0;
  std::uint64_t place = 0;
  std::uint64_t before = 0, behind = 0;
  std::uint64_t file_bytes = 0;
  std::int64_t file_changed = 0;
  std::uint64_t text = 0;  // path, name and meta, one after the other
  std::uint64_t first_event = 0;
  std::uint32_t path = 0, name = 0, meta = 0;  // bytes
  std::uint32_t events = 0;
  std::uint32_t first_part = 0, parts = 0;
  std::uint32_t rate = 0;
  std::uint16_t channels = 0;
  std::uint8_t deep = 0;
  std::uint8_t unused = 0;
};

struct EventRecord {
  std::uint64_t frame = 0;
  std::uint64_t count = 0;
  std::uint64_t mark = 0;  // an open: its rows
  std::uint8_t kind = 0;
  std::uint8_t cause = 0;
  std::uint8_t has_mark = 0;
  std::array<std::uint8_t, 5> unused{};
};

struct PartRecord {
  std::uint64_t number = 0;
  std::uint64_t first_file = 0, last_file = 0;
  std::uint64_t frames = 0;
  std::uint64_t counted = 0, once = 0;
};

struct WatchedRecord {
  std::uint64_t file_bytes = 0;
  std::int64_t file_changed = 0;
  std::uint64_t text = 0;
  std::uint64_t path = 0;  // bytes
};

static_assert(sizeof(Head) == 88 && sizeof(StreamRecord) == 96 && sizeof(EventRecord) == 32 &&
              sizeof(PartRecord) == 48 && sizeof(WatchedRecord) == 32);

}  // namespace millrace::training::index_records
