// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "schemas/slices/slice.h"

namespace millrace::recording {

// An item with a space behind it: "frames:160 ", "gap(recorder):5 ", "answer:3 ", "totals:7 ". The
// number of totals is that of the rows.
inline std::string printed(const RecordedItem& item) {
  if (const auto* answer = std::get_if<RecordedAnswer>(&item))
    return "answer:" + std::to_string(answer->seq) + " ";
  if (const auto* totals = std::get_if<StreamTotals>(&item))
    return "totals:" + std::to_string(totals->rows) + " ";
  const Event& event = std::get<RecordedEvent>(item).event;
  std::string text(name_of(event.kind));
  if (event.cause != Cause::client) text += "(" + std::string(name_of(event.cause)) + ")";
  if (event.count > 0) text += ":" + std::to_string(event.count);
  return text + " ";
}

// All items that a reader or a join gives now. `frames` receives the values.
template <class Reader>
std::string read_all(Reader& reader, std::string* frames = nullptr) {
  std::string text;
  while (const auto item = reader.next()) {
    text += printed(*item);
    const auto* read = std::get_if<RecordedEvent>(&*item);
    if (frames && read)
      frames->append(reinterpret_cast<const char*>(read->frames.data()), read->frames.size());
  }
  return text;
}

}  // namespace millrace::recording
