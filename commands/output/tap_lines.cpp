// SPDX-License-Identifier: Apache-2.0
#include "commands/output/tap_lines.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/row_layout.h"
#include "recording/format/checksums.h"
#include "schemas/json_text.h"

namespace millrace {
namespace {

using worker_protocol::RowEntry;

// A watcher may miss the ends of streams, so the number of names is bounded: the oldest are
// dropped.
constexpr std::size_t most_names = 100'000;

void append(std::string& line, std::string_view key, std::uint64_t value) {
  line.append(",\"").append(key).append("\":").append(std::to_string(value));
}

void append_reason(std::string& line, std::uint8_t reason) {
  line += ",\"reason\":";
  if (reason == 0) {
    line += "null";
  } else {
    line.append("\"").append(name_of(static_cast<ResetReason>(reason))).append("\"");
  }
}

void append_hex(std::string& line, std::uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4) line += "0123456789abcdef"[value >> shift & 0xf];
}

// The messages of the client that the row carries.
void append_messages(std::string& line, const RowEntry& row, const WorkerBatch& batch) {
  const std::size_t before = line.size();
  for (const worker_protocol::Post& post : batch.messages()) {
    if (post.stream != row.stream || post.seq != row.seq) continue;
    line += line.size() == before ? ",\"messages\":[" : ",";
    line.append("{\"position\":").append(std::to_string(post.position));
    append_in_line(line += ",\"data\":", post.data);
    line += post.set ? ",\"set\":true}" : "}";
  }
  if (line.size() > before) line += ']';
}

// The bytes of a row in the narrowest tensor that holds the row. A wider tensor has more columns at
// the end of the row.
Bytes narrowest(const WorkerBatch& batch, std::uint32_t row, RowColumns columns,
                std::span<const std::uint32_t> width_buckets) {
  const RowEntry& entry = batch.framed()[row];
  const Bytes bytes = batch.row(row);
  const std::size_t width =
      padded_length(width_buckets, columns.needed(entry.left, entry.size, entry.right));
  return bytes.first(bytes.size() / batch.width() * width);
}

}  // namespace

void TapLines::format(const WorkerBatch& batch, RowColumns columns,
                      std::span<const std::uint32_t> width_buckets) {
  for (const auto& stream : batch.opened()) names_[stream.stream] = stream.name;
  framed_.resize(batch.framed().size());
  marks_.resize(batch.marks().size());
  for (std::size_t i = 0; i < framed_.size(); ++i) {
    std::string& line = framed_[i].data;
    framed_[i].kind = Answer::Kind::json;
    write(batch.framed()[i], batch, line);
    if (checksums_) {
      line += ",\"crc32c\":\"";
      const auto row = static_cast<std::uint32_t>(i);
      append_hex(line, recording::crc32c(narrowest(batch, row, columns, width_buckets)));
      line += '"';
    }
    line += '}';
  }
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    std::string& line = marks_[i].data;
    marks_[i].kind = Answer::Kind::json;
    write(batch.marks()[i], batch, line);
    line += checksums_ ? ",\"crc32c\":null}" : "}";
  }
  const auto forget_ended = [this](const RowEntry& row) {
    if ((row.flags & (flag::end | flag::abort)) != 0) names_.erase(row.stream);
  };
  for (const RowEntry& row : batch.framed()) forget_ended(row);
  for (const RowEntry& row : batch.marks()) forget_ended(row);
  while (names_.size() > most_names) names_.erase(names_.begin());
}

// Writes the object without its end. Names of streams have no character that JSON escapes.
void TapLines::write(const RowEntry& row, const WorkerBatch& batch, std::string& line) {
  line.assign("{\"stream\":\"").append(names_[row.stream]).append("\"");
  append(line, "seq", row.seq);
  append(line, "begin", row.begin);
  append(line, "left", row.left);
  append(line, "size", row.size);
  append(line, "right", row.right);
  append_flags(line += ",\"flags\":", row.flags);
  append_reason(line, row.reason);
  append(line, "gap", row.gap);
  if (row.mark < 0) {
    line += ",\"mark\":null";
  } else {
    append(line, "mark", static_cast<std::uint64_t>(row.mark));
  }
  append(line, "slot", row.slot);
  append(line, "batch", number(batch.id()));
  append_messages(line, row, batch);
}

}  // namespace millrace
