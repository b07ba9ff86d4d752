// SPDX-License-Identifier: Apache-2.0
// Text messages of a client and of the service, and the checks for JSON, UTF-8 and names.
#include "schemas/json_commands.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "schemas/json_text.h"
#include "schemas/server_messages.h"
#include "schemas/text.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

namespace json = boost::json;
using fuzz::require;

// An independent check of UTF-8: decodes code points and applies the table of RFC 3629.
bool is_utf8_by_code_points(std::string_view text) {
  while (!text.empty()) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    std::size_t length = 1;
    while (length < 8 && (byte(0) >> (7 - length) & 1) != 0) ++length;
    if (byte(0) < 0x80) length = 0;
    if (byte(0) >= 0x80 && (length < 2 || length > 4 || text.size() < length)) return false;
    std::uint32_t point = length == 0 ? byte(0) : byte(0) & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return false;
      point = point << 6 | (byte(i) & 0x3fU);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      return false;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return true;
}

void check_text(std::string_view text) {
  const bool utf8 = is_utf8(text);
  require(utf8 == is_utf8_by_code_points(text), "is_utf8() agrees with RFC 3629");
  require(!is_printable(text, text.size()) || utf8, "printable text is UTF-8");
  require(!is_name(text) || is_printable(text, 128), "a name is printable");

  json::error_code error;
  json::parse({text.data(), text.size()}, error);
  require(is_json(text) == !error, "JSON is what is parsed as JSON");
  require(!is_json(text) || utf8, "and UTF-8");
  require(!is_json_object(text) || is_json(text), "an object is JSON");

  std::string quoted;
  append_string(quoted, text);
  if (!utf8) return;
  const json::value back = json::parse(quoted, error);
  require(!error && std::string_view(back.as_string()) == text, "a string reads as it was written");
}

constexpr std::size_t longest = 4096;

void check_client_message(std::string_view text) {
  const auto message = parse_client_message(text, longest);
  if (!message) return require(is_printable(message.error(), 100), "the error is printable");
  require(text.size() <= longest, "a message is short");
  const std::string written = to_json(*message);
  json::parse_options deep;
  deep.max_depth = 33;  // that of data, and of the object around it
  const json::value object = json::parse({text.data(), text.size()}, {}, deep);
  require(written.starts_with(R"({"type":)" + json::serialize(object.at("type"))),
          "its type is the one that a DOM has");
  const auto again = parse_client_message(written, longest);
  require(again && again->index() == message->index() && to_json(*again) == written,
          "a message reads as it was written");
}

// The answer of a worker becomes part of a result message, and a text part of an error message.
void check_passed_on(std::string_view text) {
  if (!is_utf8(text)) return;
  std::string result, error;
  const ResultHead head{
      .seq = 1, .begin = 2, .end = 3, .flags = static_cast<std::uint8_t>(text.size() & 127)};
  const auto kind = is_json(text) ? Answer::Kind::json : Answer::Kind::text;
  append_result(result, head, {kind, std::string(text)});
  const auto parsed = parse_server_message(result);
  require(parsed && parsed->type == ServerMessage::Type::result && parsed->end == 3,
          "a result can be read, whatever the answer");
  std::string message;
  append_message(message, {.number = 4, .seq = 5}, {kind, std::string(text)});
  const auto sent = parse_server_message(message);
  require(sent && sent->type == ServerMessage::Type::message && sent->number == 4 && sent->seq == 5,
          "a message can be read, whatever its data");
  append_error(error, ErrorCode::schema, text);
  const auto read = parse_server_message(error);
  require(read && read->code == "schema" && read->message == text, "an error has the given text");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(bytes, size);
  check_text(text);
  check_client_message(text);
  (void)parse_server_message(text);
  check_passed_on(text);
  return 0;
}
