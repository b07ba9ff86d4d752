// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/list_streams.h"

#include <algorithm>
#include <ostream>
#include <tuple>
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

// The table. The name is the last column, because it has any length. The column `parts` is there
// only if a stream has several. Confined to one thread.
class Table {
 public:
  explicit Table(const std::vector<recording::StreamParts>& streams) {
    for (const recording::StreamParts& parts : streams) {
      widest_pipeline_ = std::max(widest_pipeline_, parts.front().meta.pipeline.size());
      has_parts_ = has_parts_ || parts.size() > 1;
    }
  }

  void append_titles(std::string& line) const {
    append(line, {"number", "start", "duration", "state", "parts", "pipeline"});
    line += "name";
  }
  void append(std::string& line, const recording::StreamParts& parts) {
    const recording::RecordedStream stream = summary_of(parts);
    pipeline_.clear();
    append_name(pipeline_, stream.meta.pipeline);
    append(line, {std::to_string(stream.meta.number), iso_seconds(stream.meta.opened_wall),
                  clock_time(duration(stream)), state_of(stream), std::to_string(parts.size()),
                  pipeline_});
    append_name(line, stream.meta.name);
  }

 private:
  struct Columns {
    std::string number, start, length;
    std::string_view state;
    std::string parts;
    std::string_view pipeline;
  };

  void append(std::string& line, const Columns& columns) const {
    append_column(line, columns.number, 7, true);
    append_column(line, columns.start, 20, false);
    append_column(line, columns.length, 11, true);
    append_column(line, columns.state, 9, false);
    if (has_parts_) append_column(line, columns.parts, 5, true);
    append_column(line, columns.pipeline, widest_pipeline_, false);
  }

  std::size_t widest_pipeline_ = std::string_view("pipeline").size();
  bool has_parts_ = false;
  std::string pipeline_;
};

// Streams with a part that the filter accepts, by time, then by number.
std::vector<recording::StreamParts> select_parts(recording::Recordings& recordings,
                                                 const Filter& filter) {
  auto streams = join_parts(recordings.streams());
  std::erase_if(streams, [&](const recording::StreamParts& parts) {
    return std::ranges::none_of(parts, [&](const auto& part) { return filter.accepts(part); });
  });
  std::ranges::sort(streams, {}, [](const recording::StreamParts& parts) {
    return std::tuple(parts.front().meta.opened_wall, parts.front().meta.number);
  });
  return streams;
}

void append_parts(std::string& line, const recording::StreamParts& parts) {
  line += R"(,"parts":[)";
  for (const recording::RecordedStream& part : parts) {
    const auto number = [&](std::string_view member, std::uint64_t value) {
      append_number(line.append(member), value);
    };
    if (&part != &parts.front()) line += ',';
    number(R"({"number":)", part.meta.number);
    number(R"(,"epoch":)", part.meta.resumable->epoch);
    number(R"(,"frames":)", part.frames);
    number(R"(,"begin":)", part.begin);
    number(R"(,"end":)", part.end);
    line += '}';
  }
  line += ']';
}

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

void append_members(std::string& line, const recording::StreamParts& parts, bool whole) {
  const recording::RecordedStream stream = summary_of(parts);
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
  line += whole ? R"(,"whole":true)" : R"(,"whole":false)";
  line += stream.open ? R"(,"open":true)" : R"(,"open":false)";
  if (!stream.meta.resumable) return;
  append_string(line += R"(,"key":)", recording::to_hex(stream.meta.resumable->stream));
  number(R"(,"epoch":)", std::uint64_t{stream.meta.resumable->epoch});
  if (parts.size() > 1) append_parts(line, parts);
}

void list_streams(recording::Recordings& recordings, const Filter& filter, ListForm form,
                  std::ostream& out) {
  constexpr std::size_t block = 64 << 10;
  const auto streams = select_parts(recordings, filter);
  std::string lines;
  Table table(streams);
  if (form == ListForm::table && !streams.empty()) {
    table.append_titles(lines);
    lines += '\n';
  }
  for (const recording::StreamParts& parts : streams) {
    if (form == ListForm::table) {
      table.append(lines, parts);
    } else {
      append_members(lines += '{', parts, summary_of(parts).whole);
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
