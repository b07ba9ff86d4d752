// SPDX-License-Identifier: Apache-2.0
#include "recording/format/chunk_builder.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "recording/format/checksums.h"
#include "recording/format/mcap.h"

namespace millrace::recording::mcap {
namespace {

// The fields of a chunk before its records: times, size, checksum, no compression, length.
constexpr std::size_t chunk_fields = 8 + 8 + 8 + 4 + 4 + 8;
constexpr std::size_t marker_record = record_head + marker_content;
constexpr std::size_t index_head = record_head + 2 + 4, index_entry = 16;

template <class Number>
void put(std::byte*& at, Number number) {
  std::memcpy(at, &number, sizeof number);
  at += sizeof number;
}

}  // namespace

std::size_t message_bytes(std::size_t payload) { return record_head + message_head + payload + 1; }

void append_indexes(std::vector<std::byte>& into, std::uint64_t base, std::span<IndexEntry> entries,
                    std::vector<IndexPlace>& places) {
  std::ranges::sort(entries, [](const IndexEntry& a, const IndexEntry& b) {
    return a.channel != b.channel ? a.channel < b.channel : a.offset < b.offset;
  });
  Builder builder(into);
  for (std::size_t i = 0; i < entries.size();) {
    const std::uint16_t channel = entries[i].channel;
    std::size_t end = i;
    while (end < entries.size() && entries[end].channel == channel) ++end;
    places.push_back({.channel = channel, .offset = base + into.size()});
    const std::size_t begun = builder.begin(Opcode::message_index);
    builder.u16(channel);
    builder.u32(static_cast<std::uint32_t>((end - i) * index_entry));
    for (; i < end; ++i) {
      builder.u64(entries[i].time);
      builder.u64(entries[i].offset);
    }
    builder.end(begun);
  }
}

void ChunkBuilder::begin(std::vector<std::byte>& into, std::uint64_t base, std::uint64_t number) {
  assert(!begun());
  into_ = &into;
  base_ = base;
  number_ = number;
  marker_ = into.size();
  padding_ = 7 - (base + marker_ + marker_record - 1) % 8;
  into.resize(marker_ + marker_record + padding_ + record_head + chunk_fields);
  records_ = into.size();
  entries_.clear();
  places_.clear();
}

void ChunkBuilder::add_channel(Bytes record) {
  assert(record.size() % 8 == 0);
  Builder(*into_).bytes(record);
}

void ChunkBuilder::add_message(std::uint16_t channel, std::uint32_t sequence, std::uint64_t time,
                               std::span<const Bytes> payload) {
  std::size_t size = 0;
  for (const Bytes part : payload) size += part.size();
  assert(size % 8 == 0);
  entries_.push_back({.channel = channel, .time = time, .offset = record_bytes()});
  std::array<std::byte, record_head + message_head> head;
  std::byte* at = head.data();
  put(at, Opcode::message);
  put(at, std::uint64_t{message_bytes(size) - record_head});
  put(at, channel);
  put(at, sequence);
  put(at, time);
  put(at, time);
  into_->insert(into_->end(), head.begin(), head.end());
  assert((base_ + into_->size()) % 8 == 0);
  for (const Bytes part : payload) into_->insert(into_->end(), part.begin(), part.end());
  into_->push_back(std::byte{0});
}

std::size_t ChunkBuilder::record_bytes() const { return into_->size() - records_; }

std::size_t ChunkBuilder::index_bytes() const {
  return entries_.size() * (index_head + index_entry);
}

ChunkFacts ChunkBuilder::end() {
  assert(begun() && !entries_.empty());
  std::vector<std::byte>& into = *std::exchange(into_, nullptr);
  const auto [first, last] = std::ranges::minmax_element(entries_, {}, &IndexEntry::time);
  const Bytes records = Bytes(into).subspan(records_);
  const std::size_t chunk = marker_ + marker_record + padding_;
  ChunkFacts facts{.first_time = first->time,
                   .last_time = last->time,
                   .offset = base_ + chunk,
                   .bytes = into.size() - chunk,
                   .records = records.size()};
  std::byte* at = into.data() + chunk;
  put(at, Opcode::chunk);
  put(at, std::uint64_t{facts.bytes - record_head});
  put(at, facts.first_time);
  put(at, facts.last_time);
  put(at, facts.records);
  put(at, crc32(records));
  put(at, std::uint32_t{0});  // no compression
  put(at, facts.records);
  marker_bytes_.clear();
  append(marker_bytes_, {.id = id_, .number = number_, .length = facts.bytes}, padding_);
  std::ranges::copy(marker_bytes_, into.begin() + static_cast<std::ptrdiff_t>(marker_));
  const std::size_t indexes = into.size();
  append_indexes(into, base_, entries_, places_);
  facts.index_bytes = into.size() - indexes;
  return facts;
}

}  // namespace millrace::recording::mcap
