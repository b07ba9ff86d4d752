// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>

#include "chunker/row_layout.h"

namespace millrace {

inline Align align_from(const boost::json::value& word) {
  return word.as_string() == "packed" ? Align::packed : Align::body;
}
inline Pad pad_from(const boost::json::value& word) {
  return word.as_string() == "repeat" ? Pad::repeat : Pad::zero;
}

// The values of the row's columns, where frame p has the value p + 1; null for a marker row.
inline boost::json::value row_values(const Row& row, const ChunkRule& rule, std::uint32_t width) {
  if (!row.has_frames()) return nullptr;
  const RowLayout layout = row_layout(row, rule, width);
  const std::uint64_t first = row.window_begin() + 1, last = row.window_begin() + layout.window;
  const bool repeat = rule.pad == Pad::repeat;
  boost::json::array values;
  values.insert(values.end(), layout.lead, repeat ? first : 0);
  for (std::uint64_t value = first; value <= last; ++value) values.push_back(value);
  values.insert(values.end(), layout.trail, repeat ? last : 0);
  return values;
}

}  // namespace millrace
