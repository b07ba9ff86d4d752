// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/export/stream_record.h"

#include "commands/recorded/event_json.h"
#include "commands/recorded/list_streams.h"
#include "schemas/json_text.h"

namespace millrace::recordings {
namespace {

// Begins the next object of an array without its brackets.
std::string& next_object(std::string& array) { return array += array.empty() ? "{" : ",{"; }

void append_frame_type(std::string& line, const FrameType& frames) {
  append_string(line += R"(,"element":)", name_of(frames.element));
  append_number(line += R"(,"values":)", std::uint64_t{frames.values});
  append_number(line += R"(,"rate":)", frames.rate);
  line += frames.features ? R"(,"features":true)" : R"(,"features":false)";
}

}  // namespace

void StreamRecord::add(const recording::RecordedItem& item, std::int64_t opened) {
  const auto* read = std::get_if<recording::RecordedEvent>(&item);
  if (read && read->event.kind == Event::Kind::frames) return;
  std::string& array = items_[item.index()];
  if (!array.empty()) array += ',';
  append_item(array, item, opened);
}

std::string StreamRecord::line(const std::vector<PartFiles::File>& files,
                               const std::vector<recording::MissingPart>& missing) const {
  const recording::StreamMeta& meta = parts_.front().meta;
  // The list of streams is from the summaries of the files: damage shows when the chunks are read.
  const bool whole = summary_of(parts_).whole && missing.empty();
  std::string line = "{";
  append_members(line, parts_, whole);
  append_frame_type(line, meta.frames);
  append_json(line += R"(,"rule":)", meta.rule);
  append_json(line += R"(,"client":)", meta.client);
  append_json(line += R"(,"options":)", meta.options);
  std::string list;
  for (const PartFiles::File& file : files) {
    append_string(next_object(list) += R"("file":)", file.name);
    append_number(list += R"(,"begin":)", file.begin);
    append_number(list += R"(,"end":)", file.end);
    list += '}';
  }
  std::string lost;
  for (const recording::MissingPart& part : missing) {
    append_missing(next_object(lost), part);
    lost += '}';
  }
  line.append(R"(,"files":[)").append(list);
  for (std::size_t kind = 0; kind + 1 < items_.size(); ++kind)
    line.append(R"(],")").append(array_of(kind)).append(R"(":[)").append(items_[kind]);
  line.append(R"(],"missing":[)").append(lost);
  const std::string& totals = items_.back();
  line.append(R"(],"totals":)").append(totals.empty() ? "null" : totals).append("}\n");
  return line;
}

}  // namespace millrace::recordings
