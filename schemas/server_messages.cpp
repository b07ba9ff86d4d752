// SPDX-License-Identifier: Apache-2.0
#include "schemas/server_messages.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <cassert>
#include <charconv>
#include <cstring>

#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace {
namespace {

namespace json = boost::json;

constexpr std::string_view failed = R"("error":"worker_failed"})";
constexpr std::string_view too_long = R"("error":"too_long"})";

void append_fault(std::string& out, std::string_view type, ErrorCode code,
                  std::string_view message) {
  out.append(R"({"type":")").append(type).append(R"(","code":")").append(name_of(code));
  append_string(out += R"(","message":)", message);
}

ServerMessage::Type type_named(std::string_view name) {
  constexpr std::array<std::string_view, 11> names{"",        "ready",    "result",  "message",
                                                   "flushed", "rejected", "warning", "error",
                                                   "goaway",  "closed",   "ack"};
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? ServerMessage::Type::unknown
                              : static_cast<ServerMessage::Type>(found - names.begin());
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

std::uint64_t number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<std::uint64_t>(value->get_int64());
}

double seconds_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  json::error_code none;
  const double seconds = value == nullptr ? 0 : value->to_number<double>(none);
  return none ? 0 : seconds;
}

std::uint8_t flags_of(const json::object& object) {
  const json::value* names = object.if_contains("flags");
  std::uint8_t flags = 0;
  if (names == nullptr || !names->is_array()) return flags;
  for (const json::value& name : names->get_array())
    if (name.is_string()) flags |= flag_named({name.get_string().data(), name.get_string().size()});
  return flags;
}

std::optional<ResumePoint> point_of(const json::object& object) {
  const json::value* numbers = object.if_contains("ack");
  if (!numbers || !numbers->is_array() || numbers->get_array().size() != 5) return std::nullopt;
  const auto number = [&](std::size_t i) {
    const json::value& value = numbers->get_array()[i];
    return value.is_int64()
               ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, value.get_int64()))
               : 0;
  };
  return ResumePoint{number(0), number(1), number(2), number(3), number(4)};
}

void read_resume(ServerMessage& into, const json::object& object) {
  into.commands = number_of(object, "commands");
  into.frame_bytes = number_of(object, "frame_bytes");
  into.keep = number_of(object, "keep");
  into.resume = text_of(object, "resume");
  if (const json::value* resumed = object.if_contains("resumed"))
    into.resumed = resumed->is_bool() && resumed->get_bool();
  if (object.contains("n")) into.n = number_of(object, "n");
  into.point =
      into.type == ServerMessage::Type::ack
          ? ResumePoint{into.seq, into.frames, into.commands, into.begin, number_of(object, "skip")}
          : point_of(object);
}

void read_answer(ServerMessage& into, const json::object& object, std::string_view text) {
  if (const json::value* data = object.if_contains("data")) {
    into.kind = data->is_string() ? Answer::Kind::text : Answer::Kind::json;
    into.data = member_text(text, "data");
    into.text = text_of(object, "data");
  } else if (object.contains("error")) {
    into.kind = Answer::Kind::error;
    into.text = text_of(object, "error");
  }
  if (object.contains("explain")) into.explain = member_text(text, "explain");
}

// The stages up to `compute`: the stage `result` ends only when the result is written.
void append_explanation(std::string& out, const Explanation& row) {
  append_number(out += R"("explain":{"slot":)", std::uint64_t{number(row.in_batch.slot)});
  append_number(out += R"(,"batch":)", number(row.in_batch.batch));
  append_number(out += R"(,"rows":)", std::uint64_t{row.in_batch.rows});
  append_string(out += R"(,"trigger":)", name_of(row.in_batch.trigger));
  out += R"(,"ms":{)";
  const auto spans = stages(row.at);
  for (std::size_t i = 0; i < spans.size() - 1; ++i) {
    const auto time = std::chrono::round<std::chrono::microseconds>(spans[i]);
    append_string(out, stage_names[i]);
    append_number(out += ':', static_cast<double>(time.count()) / 1000);
    out += i + 2 < spans.size() ? ',' : '}';
  }
  out += "},";
}

void append_head(std::string& out, const ResultHead& head) {
  append_number(out += R"({"type":"result","seq":)", head.seq);
  append_number(out += R"(,"begin":)", head.begin);
  append_number(out += R"(,"end":)", head.end);
  append_number(out += R"(,"begin_s":)", static_cast<double>(head.begin) / head.rate);
  append_number(out += R"(,"end_s":)", static_cast<double>(head.end) / head.rate);
  append_flags(out += R"(,"flags":)", head.flags);
  out += ',';
  if (head.explanation) append_explanation(out, *head.explanation);
}

// The last member of a message, and its end.
void append_data(std::string& out, const Answer& answer) {
  assert(answer.kind != Answer::Kind::json || is_json(answer.data));
  assert(answer.kind != Answer::Kind::text || is_utf8(answer.data));
  out += R"("data":)";
  answer.kind == Answer::Kind::json ? void(out.append(answer.data))
                                    : append_string(out, answer.data);
  out += '}';
}

}  // namespace

void append_ready(std::string& out, const StreamReady& ready) {
  append_string(out += R"({"type":"ready","stream":)", ready.stream);
  append_string(out += R"(,"pipeline":)", ready.pipeline);
  append_number(out += R"(,"frames":)", ready.frames);
  if (!ready.resume.empty()) {
    append_number(out += R"(,"commands":)", ready.commands);
    append_number(out += R"(,"frame_bytes":)", std::uint64_t{ready.frame_bytes});
    append_number(out += R"(,"keep":)", ready.keep);
  }
  if (ready.resumed) out += *ready.resumed ? R"(,"resumed":true)" : R"(,"resumed":false)";
  if (!ready.resume.empty()) append_string(out += R"(,"resume":)", ready.resume);
  out += '}';
}

void append_result(std::string& out, const ResultHead& head, const Answer& answer) {
  append_head(out, head);
  if (answer.kind == Answer::Kind::error)
    out += failed;
  else
    append_data(out, answer);
}

void append_too_long(std::string& out, const ResultHead& head) {
  append_head(out, head);
  out += too_long;
}

void append_message(std::string& out, const MessageHead& head, const Answer& message) {
  append_number(out += R"({"type":"message","number":)", head.number);
  append_number(out += R"(,"seq":)", head.seq);
  append_data(out += ',', message);
}

void append_flushed(std::string& out, std::uint64_t mark, std::optional<std::uint64_t> seq) {
  append_number(out += R"({"type":"flushed","mark":)", mark);
  if (seq) append_number(out += R"(,"seq":)", *seq);
  out += '}';
}

void append_rejected(std::string& out, ErrorCode code, std::string_view message,
                     std::uint64_t frames) {
  append_fault(out, "rejected", code, message);
  append_number(out += R"(,"frames":)", frames);
  out += '}';
}

void append_warning(std::string& out, ErrorCode code, std::string_view message) {
  append_fault(out, "warning", code, message);
  out += '}';
}

void append_error(std::string& out, ErrorCode code, std::string_view message) {
  append_fault(out, "error", code, message);
  out += '}';
}

void append_goaway(std::string& out, std::chrono::milliseconds retry_after) {
  append_number(out += R"({"type":"goaway","retry_after_ms":)",
                static_cast<std::uint64_t>(std::max<std::int64_t>(0, retry_after.count())));
  out += '}';
}

void append_closed(std::string& out, std::uint64_t frames, std::uint64_t chunks) {
  append_number(out += R"({"type":"closed","frames":)", frames);
  append_number(out += R"(,"chunks":)", chunks);
  out += '}';
}

void append_ack(std::string& out, const ResumePoint& point) {
  append_number(out += R"({"type":"ack","seq":)", point.seq);
  append_number(out += R"(,"frames":)", point.frames);
  append_number(out += R"(,"commands":)", point.commands);
  append_number(out += R"(,"begin":)", point.begin);
  append_number(out += R"(,"skip":)", point.skip);
  out += '}';
}

void append_message_number(std::string& out, const MessageNumber& number) {
  assert(out.ends_with('}'));
  std::array<char, 160> text;  // each number has at most 20 digits
  char* at = text.data();
  // Every result of a client that resumes has these: the lengths of the names are constants, and
  // most numbers of commands and of frames to skip are 0.
  const auto put = [&]<std::size_t size>(const char(&name)[size], std::uint64_t value) {
    std::memcpy(at, name, size - 1);
    at += size - 1;
    if (value == 0)
      *at++ = '0';
    else
      at = std::to_chars(at, text.end(), value).ptr;
  };
  put(R"(,"n":)", number.n);
  if (const auto& point = number.point) {
    put(R"(,"ack":[)", point->seq);
    put(",", point->frames);
    put(",", point->commands);
    put(",", point->begin);
    put(",", point->skip);
    *at++ = ']';
  }
  *at++ = '}';
  out.pop_back();
  out.append(text.data(), static_cast<std::size_t>(at - text.data()));
}

std::optional<ServerMessage> parse_server_message(std::string_view text) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 40;  // 32 for a worker's value, and a margin for the message around it
  const json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  ServerMessage message{
      .type = type_named(text_of(object, "type")),
      .stream = text_of(object, "stream"),
      .pipeline = text_of(object, "pipeline"),
      .code = text_of(object, "code"),
      .message = text_of(object, "message"),
      .number = number_of(object, "number"),
      .seq = number_of(object, "seq"),
      .begin = number_of(object, "begin"),
      .end = number_of(object, "end"),
      .begin_s = seconds_of(object, "begin_s"),
      .end_s = seconds_of(object, "end_s"),
      .flags = flags_of(object),
      .kind = Answer::Kind::none,
      .data = {},
      .text = {},
      .explain = {},
      .frames = number_of(object, "frames"),
      .chunks = number_of(object, "chunks"),
      .mark = number_of(object, "mark"),
      .retry_after = std::chrono::milliseconds(number_of(object, "retry_after_ms")),
      .commands = 0,
      .frame_bytes = 0,
      .keep = 0,
      .resume = {},
      .resumed = {},
      .n = {},
      .point = {},
  };
  if (message.type == ServerMessage::Type::result || message.type == ServerMessage::Type::message)
    read_answer(message, object, text);
  read_resume(message, object);
  return message;
}

}  // namespace millrace
