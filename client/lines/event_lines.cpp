// SPDX-License-Identifier: Apache-2.0
#include "client/lines/event_lines.h"

#include <cstdint>
#include <variant>

#include "schemas/json_text.h"
#include "transport/base64/base64.h"

namespace millrace {

void append_answer(std::string& line, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::json: line.append("\"data\":").append(answer.data); break;
    case Answer::Kind::text: append_string(line += "\"data\":", answer.data); break;
    case Answer::Kind::bytes: append_string(line += "\"bytes\":", base64(answer.data)); break;
    default: append_string(line += "\"error\":", answer.data);
  }
}

EventLines::EventLines(std::string_view file, std::optional<std::uint32_t> channel) {
  append_file_name(file_ = R"({"file":)", file);
  if (channel) append_number(file_ += R"(,"channel":)", std::uint64_t{*channel});
}

EventLines::EventLines(std::uint64_t number, std::string_view name) {
  append_number(file_ = R"({"number":)", number);
  append_string(stream_ = ",\"stream\":", name);
}

const std::string& EventLines::line(const ClientEvent& event) {
  std::visit([this](const auto& one) { add(one); }, event);
  return line_ += '}';
}

const std::string& EventLines::line(const StreamFailed& failed) {
  begin("error");
  append("code", failed.code());
  append("message", failed.message());
  return line_ += '}';
}

void EventLines::begin(std::string_view type) {
  line_.assign(file_).append(stream_);
  append("type", type);
}

void EventLines::append(std::string_view name, std::string_view text) {
  append_string(line_.append(",\"").append(name).append("\":"), text);
}
void EventLines::append(std::string_view name, std::uint64_t number) {
  append_number(line_.append(",\"").append(name).append("\":"), number);
}
void EventLines::append(std::string_view name, double number) {
  append_number(line_.append(",\"").append(name).append("\":"), number);
}

void EventLines::add(const client_event::Opened& opened) {
  stream_.clear();
  begin("ready");
  append("stream", opened.stream);
  append("pipeline", opened.pipeline);
  append("frames", opened.frames);
  append_string(stream_ = ",\"stream\":", opened.stream);
}

void EventLines::add(const client_event::Result& result) {
  begin("result");
  append("seq", result.seq);
  append("begin", result.begin);
  append("end", result.end);
  append("begin_s", result.begin_s);
  append("end_s", result.end_s);
  append_flags(line_ += ",\"flags\":", result.flags);
  append_answer(line_ += ',', result.answer);
}

void EventLines::add(const client_event::Message& message) {
  begin("message");
  append("number", message.number);
  append("seq", message.seq);
  append_answer(line_ += ',', message.message);
}

void EventLines::add(const client_event::Flushed& flushed) {
  begin("flushed");
  append("mark", flushed.mark);
}

void EventLines::add(const client_event::Rejected& rejected) {
  begin("rejected");
  append("code", rejected.code);
  append("message", rejected.message);
  append("frames", rejected.frames);
}

void EventLines::add(const client_event::Warned& warned) {
  begin("warning");
  append("code", warned.code);
  append("message", warned.message);
}

void EventLines::add(const client_event::Goaway& goaway) {
  begin("goaway");
  append("retry_after_ms", static_cast<std::uint64_t>(goaway.retry_after.count()));
}

void EventLines::add(const client_event::Resumed& resumed) {
  begin("resumed");
  line_ += resumed.kept ? R"(,"kept":true)" : R"(,"kept":false)";
}

void EventLines::add(const client_event::Closed& closed) {
  begin("closed");
  append("frames", closed.frames);
  append("chunks", closed.chunks);
}

}  // namespace millrace
