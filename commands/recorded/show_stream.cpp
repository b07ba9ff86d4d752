// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/show_stream.h"

#include <optional>
#include <ostream>

#include "commands/output/row_lines.h"
#include "commands/recorded/event_json.h"
#include "commands/recorded/recorded_rule.h"
#include "cutting/cutter.h"
#include "recording/reader/joined_reader.h"

namespace millrace::recordings {
namespace {

using recording::JoinedReader;
using recording::RecordedEvent;

void note_missing(const JoinedReader& reader, const recording::StreamParts& parts,
                  Progress& progress) {
  for (const recording::MissingPart& part : reader.missing())
    progress.note("stream " + std::to_string(parts.front().meta.number) + ": positions " +
                  std::to_string(part.begin) + " to " + std::to_string(part.end) + ", " +
                  counted(part.events, "event") + ": " + part.why);
}

}  // namespace

void show_events(recording::Recordings& recordings, const recording::StreamParts& parts,
                 std::ostream& out, Progress& progress) {
  JoinedReader reader(recordings, parts);
  std::string line;
  while (const auto item = reader.next()) {
    line.clear();
    append_item(line, *item, reader.opened_steady());
    out << (line += '\n');
    if (!out) return;
  }
  note_missing(reader, parts, progress);
}

Result<void, std::string> show_rows(recording::Recordings& recordings,
                                    const recording::StreamParts& parts, std::ostream& out,
                                    Progress& progress) {
  JoinedReader reader(recordings, parts);
  std::optional<Cutter> cutter;
  RowLines lines(out);
  while (const auto item = reader.next()) {
    const auto* read = std::get_if<RecordedEvent>(&*item);
    if (read == nullptr) continue;
    if (read->event.kind == Event::Kind::open) {
      const auto rule = recorded_rule(reader.part());
      if (!rule) return rule.error();
      cutter.emplace(*rule);
    }
    if (!cutter->allows(read->event))
      return "the rule does not allow the recorded size " + std::to_string(read->event.count);
    cutter->add(read->event);
    while (const auto row = cutter->next()) {
      if (row->seq < reader.rows_until()) lines.print(*row);
      if (!out) return {};
    }
  }
  note_missing(reader, parts, progress);
  return {};
}

}  // namespace millrace::recordings
