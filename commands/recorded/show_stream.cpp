// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/show_stream.h"

#include <ostream>
#include <variant>

#include "commands/output/row_lines.h"
#include "commands/recorded/event_json.h"
#include "commands/recorded/recorded_rule.h"

namespace millrace::recordings {
namespace {

using recording::ReadEvent;
using recording::ReadItem;
using recording::StreamReader;

void note_missing(const StreamReader& reader, Progress& progress) {
  for (const recording::MissingPart& part : reader.missing())
    progress.note("stream " + std::to_string(reader.stream().meta.number) + ": positions " +
                  std::to_string(part.begin) + " to " + std::to_string(part.end) + ", " +
                  counted(part.events, "event") + ": " + part.why);
}

// Prints items as lines.
class ItemLines {
 public:
  ItemLines(std::ostream& out, std::int64_t opened_steady)
      : out_(out), opened_steady_(opened_steady) {}

  void print(const ReadItem& item) {
    line_ = '{';
    std::visit([this](const auto& one) { append(one); }, item);
    out_ << (line_ += "}\n");
  }

 private:
  void append(const ReadEvent& read) {
    append_event(line_, read, position_, opened_steady_);
    if (read.event.kind == Event::Kind::frames || read.event.kind == Event::Kind::gap)
      position_ += read.event.count;
  }
  void append(const recording::RecordedAnswer& answer) { append_answer(line_, answer); }
  void append(const recording::StreamTotals& totals) { append_totals(line_, totals); }

  std::ostream& out_;
  const std::int64_t opened_steady_;
  std::uint64_t position_ = 0;
  std::string line_;
};

}  // namespace

void show_events(Recordings& recordings, const RecordedStream& stream, std::ostream& out,
                 Progress& progress) {
  StreamReader reader(recordings, stream);
  ItemLines lines(out, stream.meta.opened_steady);
  while (const auto item = reader.next()) {
    lines.print(*item);
    if (!out) return;
  }
  note_missing(reader, progress);
}

Result<void, std::string> show_rows(Recordings& recordings, const RecordedStream& stream,
                                    std::ostream& out, Progress& progress) {
  auto rule = RecordedRule::of(stream);
  if (!rule) return rule.error();
  StreamReader reader(recordings, stream);
  RowLines lines(out);
  while (const auto item = reader.next()) {
    const auto* read = std::get_if<ReadEvent>(&*item);
    if (read == nullptr) continue;
    if (!rule->add(read->event))
      return "the rule does not allow the recorded size " + std::to_string(read->event.count);
    while (const auto row = rule->next()) {
      lines.print(*row);
      if (!out) return {};
    }
  }
  note_missing(reader, progress);
  return {};
}

}  // namespace millrace::recordings
