// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "recording/reader/event_join.h"

namespace millrace::recording {

// Reads all items that the join gives now, and prints them, each with a space behind it:
// "open frames:0,1 gap(recorder):5 answer:3 totals:7 ". Values are bytes; totals are rows.
inline std::string printed_items(EventJoin& join) {
  std::string printed;
  while (const auto item = join.next()) {
    if (const auto* answer = std::get_if<RecordedAnswer>(&*item)) {
      printed += "answer:" + std::to_string(answer->seq) + " ";
      continue;
    }
    if (const auto* totals = std::get_if<StreamTotals>(&*item)) {
      printed += "totals:" + std::to_string(totals->rows) + " ";
      continue;
    }
    const auto& read = std::get<ReadEvent>(*item);
    printed += name_of(read.event.kind);
    if (read.event.cause != Cause::client)
      printed += "(" + std::string(name_of(read.event.cause)) + ")";
    if (read.event.kind == Event::Kind::frames) {
      std::string values;
      for (const std::byte value : read.frames)
        values += (values.empty() ? "" : ",") + std::to_string(static_cast<int>(value));
      printed += ":" + values;
    } else if (read.event.count > 0) {
      printed += ":" + std::to_string(read.event.count);
    }
    printed += " ";
  }
  return printed;
}

}  // namespace millrace::recording
