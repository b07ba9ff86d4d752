// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_commands.h"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "schemas/json_text.h"

namespace millrace {
namespace {

namespace json = boost::json;
using namespace client_message;
using Parsed = Result<ClientMessage, std::string>;

// The largest integer that every JSON reader keeps exactly.
constexpr std::uint64_t largest = (std::uint64_t{1} << 53) - 1;

// The members of a command. `number` is nullopt if the value is not a whole number from 0 to
// `largest`.
struct Members {
  struct Number {
    std::optional<std::uint64_t> number;
  };

  bool is_object = false;
  bool repeated = false;  // a key occurs twice
  std::optional<std::string> type;
  std::optional<Number> mark;
  std::optional<Number> frames;
  std::optional<Number> n;
  std::optional<bool> data, options;  // true if they are given
  std::size_t others = 0;

  // The number of keys besides `type`.
  std::size_t size() const {
    return mark.has_value() + frames.has_value() + n.has_value() + data.has_value() +
           options.has_value() + others;
  }
};

// The handler of Boost.JSON's parser: keeps the members of commands and builds no values for the
// rest. The cost of a text is therefore bounded by its length. A DOM, in contrast, has a hash table
// whose keys a client can make collide.
class CommandReader {
 public:
  using error_code = json::error_code;
  using string_view = json::string_view;

  // The length of the text bounds them.
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  Members members;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    if (depth_ == 0) members.is_object = true;
    return open();
  }
  bool on_object_end(std::size_t, error_code&) { return close(); }
  bool on_array_begin(error_code&) { return open(); }
  bool on_array_end(std::size_t, error_code&) { return close(); }
  bool on_key_part(string_view part, std::size_t, error_code&) { return append(part); }
  bool on_key(string_view part, std::size_t, error_code&) {
    append(part);
    if (depth_ == 1) key_ = text_;
    text_.clear();
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) { return append(part); }
  bool on_string(string_view part, std::size_t, error_code&) {
    append(part);
    if (depth_ == 1) add({}, text_);
    text_.clear();
    return true;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t value, string_view, error_code&) {
    const auto number = static_cast<std::uint64_t>(value);
    return add(value >= 0 && number <= largest ? std::optional(number) : std::nullopt);
  }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return add({}); }  // above 2^63
  bool on_double(double, string_view, error_code&) { return add({}); }
  bool on_bool(bool, error_code&) { return add({}); }
  bool on_null(error_code&) { return add({}); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  bool append(string_view part) {
    if (depth_ == 1) text_.append(part.data(), part.size());
    return true;
  }
  bool open() {
    add({});  // an object or array as a value
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  // Adds the value of key_.
  bool add(std::optional<std::uint64_t> number, std::optional<std::string> text = {}) {
    if (depth_ != 1) return true;
    if (key_ == "type")
      set_once(members.type, text.value_or(""));
    else if (key_ == "mark")
      set_once(members.mark, {number});
    else if (key_ == "frames")
      set_once(members.frames, {number});
    else if (key_ == "n")
      set_once(members.n, {number});
    else if (key_ == "data")
      set_once(members.data, true);
    else if (key_ == "options")
      set_once(members.options, true);
    else
      ++members.others;
    return true;
  }
  template <class Value>
  void set_once(std::optional<Value>& into, Value value) {
    members.repeated |= into.has_value();
    into = std::move(value);
  }

  std::string key_;
  std::string text_;
  std::size_t depth_ = 0;
};

Parsed parse_flush(const Members& members) {
  if (members.size() > (members.mark ? 1 : 0))
    return std::string("flush must have no key other than mark");
  if (!members.mark) return ClientMessage(Flush{});
  if (!members.mark->number) return std::string("mark must be a whole number from 0 to 2^53-1");
  return ClientMessage(Flush{members.mark->number});
}

Parsed parse_gap(const Members& members) {
  if (!members.frames || members.size() > 1)
    return std::string("gap must have the key frames, and no other");
  const auto number = members.frames->number;
  if (number.value_or(0) == 0) return std::string("frames must be a whole number from 1 to 2^53-1");
  return ClientMessage(Gap{*number});
}

// The data is passed on as it was written.
Parsed parse_message(const Members& members, std::string_view text) {
  const std::string_view data = member_text(text, "data");
  if (data.empty() || members.size() > 1)
    return std::string("message must have the key data, written without escapes, and no other");
  return ClientMessage(Message{std::string(data)});
}

Parsed parse_set(const Members& members, std::string_view text) {
  const std::string_view options = member_text(text, "options");
  if (!options.starts_with('{') || members.size() > 1)
    return std::string(
        "set must have the key options, written without escapes, an object, and no other");
  return ClientMessage(Set{std::string(options)});
}

Parsed parse_ack(const Members& members) {
  if (!members.n || !members.n->number || members.size() != 1)
    return std::string("ack must have the key n, a whole number from 0 to 2^53-1, and no other");
  return ClientMessage(Ack{*members.n->number});
}

Parsed parse_members(const Members& members, std::string_view text) {
  if (members.repeated) return std::string("a key is given twice");
  if (!members.type || members.type->empty())
    return std::string("a command must have a type, a string");
  const std::string& type = *members.type;
  if (type == "flush") return parse_flush(members);
  if (type == "gap") return parse_gap(members);
  if (type == "message") return parse_message(members, text);
  if (type == "set") return parse_set(members, text);
  if (type == "ack") return parse_ack(members);
  const bool alone = members.size() == 0;
  if (type == "reset" && alone) return ClientMessage(Reset{});
  if (type == "keepalive" && alone) return ClientMessage(Keepalive{});
  if (type == "end" && alone) return ClientMessage(End{});
  if (type == "reset" || type == "keepalive" || type == "end")
    return type + " must have no other key";
  return std::string(
      "unknown type; must be flush, gap, reset, message, set, keepalive, end or ack");
}

// An acknowledgement as JavaScript and this library write it, or as Python does, with spaces. It is
// the only command that comes all the time.
std::optional<Ack> parse_short_ack(std::string_view text) {
  std::string_view before = R"({"type":"ack","n":)";
  if (!text.starts_with(before)) before = R"({"type": "ack", "n": )";
  if (!text.starts_with(before) || !text.ends_with('}')) return std::nullopt;
  text = text.substr(before.size(), text.size() - before.size() - 1);
  if (text.starts_with('0') && text != "0") return std::nullopt;  // no number in JSON
  const char* const end = text.data() + text.size();
  std::uint64_t n = 0;
  const auto [read, error] = std::from_chars(text.data(), end, n);
  if (error != std::errc() || read != end || n > largest) return std::nullopt;
  return Ack{n};
}

struct Writer {
  std::string operator()(const Flush& flush) const {
    std::string out = R"({"type":"flush")";
    if (flush.mark) append_number(out += R"(,"mark":)", *flush.mark);
    return out += '}';
  }
  std::string operator()(const Gap& gap) const {
    std::string out = R"({"type":"gap","frames":)";
    append_number(out, gap.frames);
    return out += '}';
  }
  std::string operator()(const Message& message) const {
    return R"({"type":"message","data":)" + message.data + '}';
  }
  std::string operator()(const Set& set) const {
    return R"({"type":"set","options":)" + set.options + '}';
  }
  std::string operator()(const Ack& ack) const {
    std::string out = R"({"type":"ack","n":)";
    append_number(out, ack.n);
    return out += '}';
  }
  std::string operator()(const Reset&) const { return R"({"type":"reset"})"; }
  std::string operator()(const Keepalive&) const { return R"({"type":"keepalive"})"; }
  std::string operator()(const End&) const { return R"({"type":"end"})"; }
};

}  // namespace

Result<ClientMessage, std::string> parse_client_message(std::string_view text,
                                                        std::size_t longest) {
  if (text.size() > longest)
    return "a text message must be a command of at most " + std::to_string(longest) +
           " bytes; send frames in binary messages";
  if (const auto ack = parse_short_ack(text)) return ClientMessage(*ack);
  json::parse_options options;
  options.max_depth = 1 + deepest_data;
  json::basic_parser<CommandReader> parser(options);
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  const Members& members = parser.handler().members;
  if (!members.is_object || (!error && read != text.size()))
    return std::string("must be a JSON object; send frames in binary messages");
  if (error == json::error::too_deep)
    return "data and options must be nested at most " + std::to_string(deepest_data) + " deep";
  if (error) return std::string("must be valid JSON");
  return parse_members(members, text);
}

std::string to_json(const ClientMessage& message) { return std::visit(Writer{}, message); }

}  // namespace millrace
