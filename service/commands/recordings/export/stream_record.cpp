// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/export/stream_record.h"

#include <utility>
#include <variant>

#include "schemas/json_text.h"
#include "service/commands/recordings/event_json.h"
#include "service/commands/recordings/list_streams.h"

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

StreamRecord::StreamRecord(const recording::RecordedStream& stream)
    : opened_steady_(stream.meta.opened_steady) {
  append_members(line_ = '{', stream);
  append_frame_type(line_, stream.meta.frames);
  append_json(line_ += R"(,"rule":)", stream.meta.rule);
  append_json(line_ += R"(,"client":)", stream.meta.client);
  append_json(line_ += R"(,"options":)", stream.meta.options);
}

void StreamRecord::add(const recording::ReadItem& item) {
  std::visit([this](const auto& one) { append(one); }, item);
}

void StreamRecord::append(const recording::ReadEvent& read) {
  const bool frames = read.event.kind == Event::Kind::frames;
  if (!frames) {
    append_event(next_object(events_), read, position_, opened_steady_);
    events_ += '}';
  }
  if (frames || read.event.kind == Event::Kind::gap) position_ += read.event.count;
}

void StreamRecord::append(const recording::RecordedAnswer& answer) {
  append_answer(next_object(answers_), answer);
  answers_ += '}';
}

void StreamRecord::append(const recording::StreamTotals& totals) {
  append_totals(totals_ = '{', totals);
  totals_ += '}';
}

std::string StreamRecord::line(const std::vector<PartFiles::File>& files,
                               const std::vector<recording::MissingPart>& missing) {
  std::string list;
  for (const PartFiles::File& file : files) {
    append_string(next_object(list) += R"("file":)", file.name);
    append_number(list += R"(,"begin":)", file.begin);
    append_number(list += R"(,"end":)", file.end);
    list += '}';
  }
  std::string parts;
  for (const recording::MissingPart& part : missing) {
    append_missing(next_object(parts), part);
    parts += '}';
  }
  line_.append(R"(,"files":[)").append(list);
  line_.append(R"(],"events":[)").append(events_);
  line_.append(R"(],"answers":[)").append(answers_);
  line_.append(R"(],"missing":[)").append(parts);
  line_.append(R"(],"totals":)").append(totals_).append("}\n");
  return std::move(line_);
}

}  // namespace millrace::recordings
