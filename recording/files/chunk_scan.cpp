// SPDX-License-Identifier: Apache-2.0
#include "recording/files/chunk_scan.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace millrace::recording {
namespace {

using mcap::Cursor;
using mcap::Opcode;

constexpr std::uint64_t most_padding = 7;
constexpr std::uint64_t marker_bytes = mcap::record_head + mcap::marker_content;

std::string chunks_text(std::uint64_t first, std::uint64_t count, const std::string& error) {
  const std::string name = std::to_string(first);
  if (count == 0) return "the records before chunk " + name + " are damaged; no slice is lost";
  if (count == 1) return "chunk " + name + (error.empty() ? " is damaged" : " " + error);
  return "chunks " + name + " to " + std::to_string(first + count - 1) + " are damaged";
}

}  // namespace

std::optional<ChunkScan::PlacedMarker> ChunkScan::marker_at(std::uint64_t offset) {
  const Bytes bytes = window_.read(offset, marker_bytes + most_padding);
  Cursor cursor(bytes);
  if (cursor.u8() != static_cast<std::uint8_t>(Opcode::marker)) return std::nullopt;
  const std::uint64_t length = cursor.u64();
  if (length < mcap::marker_content || length > mcap::marker_content + most_padding)
    return std::nullopt;
  const Bytes content = cursor.bytes(length);
  if (!cursor.ok()) return std::nullopt;
  FileId id{};
  std::memcpy(id.data(), content.data(), id.size());
  const auto marker = mcap::marker_from(content, id_.value_or(id));
  // Numbers ascend: a marker with a lower number would be a copy.
  if (!marker || marker->number < next_number_) return std::nullopt;
  return PlacedMarker{*marker, offset, offset + mcap::record_head + length};
}

// Searches for the opcode and the length of a marker, and for the id if it is known.
std::optional<ChunkScan::PlacedMarker> ChunkScan::search_marker(std::uint64_t from) {
  constexpr std::array<std::byte, 8> zeros{};
  const Bytes wanted = id_ ? Bytes(*id_) : Bytes(zeros).first(7);
  const std::uint64_t before = id_ ? mcap::record_head : 2;  // bytes of the marker before `wanted`
  const std::boyer_moore_horspool_searcher searcher(wanted.begin(), wanted.end());
  while (window_.size() >= marker_bytes && from <= window_.size() - marker_bytes) {
    const Bytes bytes = window_.read(from, FileWindow::ahead);
    auto at = bytes.begin();
    while ((at = std::search(at, bytes.end(), searcher)) != bytes.end()) {
      const std::uint64_t offset = from + static_cast<std::uint64_t>(at - bytes.begin());
      ++at;
      if (offset < from + before) continue;
      // A read of the window would end the validity of `bytes`, unless it lies within them.
      const std::uint64_t begin = offset - before;
      if (begin + marker_bytes + most_padding > from + bytes.size() &&
          from + bytes.size() < window_.size())
        break;
      if (const auto marker = marker_at(begin)) return marker;
    }
    if (bytes.size() <= marker_bytes + most_padding) break;
    from += bytes.size() - (marker_bytes + most_padding);
  }
  return std::nullopt;
}

std::optional<FoundChunk> ChunkScan::next() {
  damaged_chunk_ = false;
  std::optional<PlacedMarker> marker = marker_at(indexed_end_);
  std::uint64_t at = end_;
  std::string error;
  for (;; marker.reset()) {
    if (!marker) marker = search_marker(at);
    if (!marker) return std::nullopt;
    const std::uint64_t length = marker->marker.length;
    const Bytes record = window_.read(marker->end, length);
    if (record.size() < length) return std::nullopt;
    auto read = length < mcap::record_head ? std::string("has a damaged head")
                                           : read_chunk(record, ChunkCheck::checksum);
    if (read) {
      take(*marker, index_bytes(*read), error);
      return FoundChunk{.marker = marker->begin,
                        .offset = marker->end,
                        .bytes = length,
                        .number = marker->marker.number,
                        .records = std::move(*read)};
    }
    damaged_chunk_ = true;
    error = read.error();
    if (window_.unreadable()) error = "cannot be read: " + window_.unreadable().message();
    // The checksum of the marker does not cover its padding: the chunk may begin earlier.
    at = marker->begin + marker_bytes + length;
  }
}

bool ChunkScan::has_damaged_tail() {
  if (damaged_chunk_) return true;
  // In fewer bytes than a marker and a record there is no chunk.
  if (window_.size() < indexed_end_ + marker_bytes + most_padding) return false;
  if (marker_at(indexed_end_)) return false;  // the chunk after it is cut off
  const auto opcode = static_cast<Opcode>(window_.read(indexed_end_, 1)[0]);
  if (opcode == Opcode::attachment || opcode == Opcode::data_end) return false;
  return !only_zeros_from(indexed_end_);
}

// After a loss of power, a file can have its size, but not yet its bytes.
bool ChunkScan::only_zeros_from(std::uint64_t offset) {
  while (offset < window_.size()) {
    const Bytes bytes = window_.read(offset, FileWindow::ahead);
    if (bytes.empty()) break;
    if (std::ranges::any_of(bytes, [](std::byte byte) { return byte != std::byte{}; }))
      return false;
    offset += bytes.size();
  }
  return true;
}

void ChunkScan::take(const PlacedMarker& marker, std::uint64_t indexes,
                     const std::string& last_error) {
  const std::uint64_t number = marker.marker.number;
  damage_.reset();
  if (marker.begin != indexed_end_ || number > next_number_)
    damage_ = {.begin = std::min(indexed_end_, marker.begin),
               .end = marker.begin,
               .why = chunks_text(next_number_, number - next_number_, last_error)};
  id_ = marker.marker.id;
  next_number_ = number + 1;
  end_ = marker.end + marker.marker.length;
  indexed_end_ = end_ + indexes;
}

}  // namespace millrace::recording
