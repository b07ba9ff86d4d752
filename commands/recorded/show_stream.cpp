// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/show_stream.h"

#include <ostream>

#include "commands/output/row_lines.h"
#include "commands/recorded/event_json.h"
#include "commands/recorded/recorded_rule.h"
#include "cutting/cutter.h"

namespace millrace::recordings {
namespace {

using recording::RecordedEvent;
using recording::StreamReader;

void note_missing(const StreamReader& reader, Progress& progress) {
  for (const recording::MissingPart& part : reader.missing())
    progress.note("stream " + std::to_string(reader.stream().meta.number) + ": positions " +
                  std::to_string(part.begin) + " to " + std::to_string(part.end) + ", " +
                  counted(part.events, "event") + ": " + part.why);
}

}  // namespace

void show_events(recording::Recordings& recordings, const recording::RecordedStream& stream,
                 std::ostream& out, Progress& progress) {
  StreamReader reader(recordings, stream);
  std::string line;
  while (const auto item = reader.next()) {
    line.clear();
    append_item(line, *item, stream.meta.opened_steady);
    out << (line += '\n');
    if (!out) return;
  }
  note_missing(reader, progress);
}

Result<void, std::string> show_rows(recording::Recordings& recordings,
                                    const recording::RecordedStream& stream, std::ostream& out,
                                    Progress& progress) {
  const auto rule = recorded_rule(stream);
  if (!rule) return rule.error();
  Cutter cutter(*rule);
  StreamReader reader(recordings, stream);
  RowLines lines(out);
  while (const auto item = reader.next()) {
    const auto* read = std::get_if<RecordedEvent>(&*item);
    if (read == nullptr) continue;
    if (!cutter.allows(read->event))
      return "the rule does not allow the recorded size " + std::to_string(read->event.count);
    cutter.add(read->event);
    while (const auto row = cutter.next()) {
      lines.print(*row);
      if (!out) return {};
    }
  }
  note_missing(reader, progress);
  return {};
}

}  // namespace millrace::recordings
