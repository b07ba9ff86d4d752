// SPDX-License-Identifier: Apache-2.0
#include "commands/output/row_lines.h"

#include <ostream>
#include <utility>

namespace millrace {

void PositionValues::print(std::ostream& out, std::uint64_t position) const { out << position + 1; }

void PositionValues::print_zero(std::ostream& out) const { out << 0; }

void RowLines::show(const FrameValues& values, const ChunkRule& rule, std::uint32_t width) {
  values_ = &values;
  rule_ = rule;
  width_ = width;
}

void RowLines::print(const Row& row) {
  out_ << '[' << row.seq << ',' << row.begin << ',' << row.left << ',' << row.size << ','
       << row.right << ',' << unsigned{row.flags} << ',' << row.gap;
  if (values_ != nullptr && row.has_frames()) {
    out_ << ',';
    print_columns(row);
  } else if (values_ != nullptr) {
    out_ << ",null";
  }
  out_ << "]\n";
}

void RowLines::print_columns(const Row& row) {
  const RowLayout layout = row_layout(row, rule_, width_);
  const std::uint64_t first = row.window_begin(), behind = first + layout.window;
  char separator = '[';
  const auto pad = [&](std::uint32_t columns, std::uint64_t repeated) {
    for (; columns > 0 && out_; --columns) {
      out_ << std::exchange(separator, ',');
      rule_.pad == Pad::repeat ? values_->print(out_, repeated) : values_->print_zero(out_);
    }
  };
  pad(layout.lead, first);
  for (std::uint64_t position = first; position < behind && out_; ++position) {
    out_ << std::exchange(separator, ',');
    values_->print(out_, position);
  }
  pad(layout.trail, behind - 1);
  out_ << ']';
}

}  // namespace millrace
