// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/list_streams.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "commands/recorded/instant.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace::recordings {
namespace {

// From the first frame to the last, missing ones included.
double duration(const recording::RecordedStream& stream) {
  const auto frames = static_cast<double>(stream.end - stream.begin);
  return stream.meta.frames.rate > 0 ? frames / stream.meta.frames.rate : 0;
}

void append_column(std::string& line, std::string_view text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, text.size()), ' ');
  if (right) line += blanks;
  line += text;
  if (!right) line += blanks;
  line += "  ";
}

// The table. The name is the last column, because it has any length. Confined to one thread.
class Table {
 public:
  explicit Table(const std::vector<const recording::RecordedStream*>& streams) {
    for (const recording::RecordedStream* stream : streams)
      widest_pipeline_ = std::max(widest_pipeline_, stream->meta.pipeline.size());
  }

  void append_titles(std::string& line) const {
    append(line, "number", "start", "duration", "state", "pipeline");
    line += "name";
  }
  void append(std::string& line, const recording::RecordedStream& stream) {
    pipeline_.clear();
    append_name(pipeline_, stream.meta.pipeline);
    append(line, std::to_string(stream.meta.number), iso_seconds(stream.meta.opened_wall),
           clock_time(duration(stream)), state_of(stream), pipeline_);
    append_name(line, stream.meta.name);
  }

 private:
  void append(std::string& line, std::string_view number, std::string_view start,
              std::string_view length, std::string_view state, std::string_view pipeline) const {
    append_column(line, number, 7, true);
    append_column(line, start, 20, false);
    append_column(line, length, 11, true);
    append_column(line, state, 9, false);
    append_column(line, pipeline, widest_pipeline_, false);
  }

  std::size_t widest_pipeline_ = std::string_view("pipeline").size();
  std::string pipeline_;
};

}  // namespace

std::string_view state_of(const recording::RecordedStream& stream) {
  if (stream.open) return "open";
  return stream.whole ? "whole" : "not whole";
}

void append_name(std::string& line, std::string_view name) {
  constexpr std::size_t most = 300;
  if (!name.empty() && is_printable(name, most) && name.find_first_of(" \"\\") == name.npos)
    line += name;
  else
    append_string(line, name);
}

void append_members(std::string& line, const recording::RecordedStream& stream) {
  const auto number = [&](std::string_view member, auto value) {
    line.append(member);
    append_number(line, value);
  };
  number(R"("number":)", stream.meta.number);
  append_string(line += R"(,"name":)", stream.meta.name);
  append_string(line += R"(,"pipeline":)", stream.meta.pipeline);
  line.append(R"(,"opened":")").append(iso_milliseconds(stream.meta.opened_wall)).append(R"(")");
  number(R"(,"duration":)", duration(stream));
  number(R"(,"frames":)", stream.frames);
  if (stream.begin > 0) number(R"(,"begin":)", stream.begin);
  number(R"(,"end":)", stream.end);
  line += stream.whole ? R"(,"whole":true)" : R"(,"whole":false)";
  line += stream.open ? R"(,"open":true)" : R"(,"open":false)";
}

void list_streams(recording::Recordings& recordings, const Filter& filter, ListForm form,
                  std::ostream& out) {
  constexpr std::size_t block = 64 << 10;
  const auto streams = select(recordings, filter);
  std::string lines;
  Table table(streams);
  if (form == ListForm::table && !streams.empty()) {
    table.append_titles(lines);
    lines += '\n';
  }
  for (const recording::RecordedStream* stream : streams) {
    if (form == ListForm::table) {
      table.append(lines, *stream);
    } else {
      append_members(lines += '{', *stream);
      lines += '}';
    }
    lines += '\n';
    if (lines.size() < block) continue;
    if (!out.write(lines.data(), static_cast<std::streamsize>(lines.size()))) return;
    lines.clear();
  }
  out << lines;
}

}  // namespace millrace::recordings
