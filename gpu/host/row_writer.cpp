// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/row_writer.h"

#include <cassert>
#include <cstring>

namespace millrace {

namespace {

void repeat(Bytes frame, MutableBytes columns) {
  for (; !columns.empty(); columns = columns.subspan(frame.size()))
    std::memcpy(columns.data(), frame.data(), frame.size());
}

void zero(MutableBytes columns) {
  if (!columns.empty()) std::memset(columns.data(), 0, columns.size());
}

}  // namespace

RowWriter::RowWriter(const RowFormat& format)
    : format_(format),
      convert_(conversion(format.frames, format.dtype)),
      column_bytes_(size_of(format.dtype) * format.values) {
  assert(convert_ && format.values >= 1);
}

void RowWriter::write(MutableBytes row, const std::array<Bytes, 2>& window,
                      std::uint32_t left) const {
  const std::size_t value = size_of(format_.frames);
  const std::size_t first = window[0].size() / value, second = window[1].size() / value;
  const std::size_t begin = format_.lead(left) * column_bytes_;
  const std::size_t bytes = (first + second) * size_of(format_.dtype);
  assert(bytes > 0 && bytes % column_bytes_ == 0 && begin + bytes <= row.size());

  const MutableBytes frames = row.subspan(begin, bytes);
  convert_(window[0].data(), frames.data(), first);
  convert_(window[1].data(), frames.data() + first * size_of(format_.dtype), second);

  if (format_.bare || bytes == row.size()) return;
  const MutableBytes before = row.first(begin), behind = row.subspan(begin + bytes);
  if (format_.repeat) {
    repeat(frames.first(column_bytes_), before);
    repeat(frames.last(column_bytes_), behind);
  } else {
    zero(before);
    zero(behind);
  }
}

}  // namespace millrace
