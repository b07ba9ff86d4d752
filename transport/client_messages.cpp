// SPDX-License-Identifier: Apache-2.0
#include "transport/client_messages.h"

#include <array>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>

#include "transport/json_text.h"

namespace millrace {
namespace {

namespace json = boost::json;
using namespace client_message;
using Parsed = Result<ClientMessage, std::string>;

// Numbers that every JSON reader keeps exactly.
constexpr std::uint64_t largest = (std::uint64_t{1} << 53) - 1;

std::optional<std::uint64_t> whole_number(const json::value& value) {
  if (value.is_int64() && value.get_int64() >= 0) {
    const auto number = static_cast<std::uint64_t>(value.get_int64());
    if (number <= largest) return number;
  }
  return std::nullopt;
}

Parsed parse_flush(const json::object& object) {
  const json::value* mark = object.if_contains("mark");
  if (mark == nullptr)
    return object.size() == 1 ? Parsed(Flush{}) : Parsed(std::string("flush takes only mark"));
  if (object.size() != 2) return std::string("flush takes only mark");
  const auto number = whole_number(*mark);
  if (!number) return std::string("mark is no whole number from 0 to 2^53-1");
  return ClientMessage(Flush{number});
}

Parsed parse_gap(const json::object& object) {
  const json::value* frames = object.if_contains("frames");
  if (frames == nullptr || object.size() != 2)
    return std::string("gap takes frames, and only that");
  const auto number = whole_number(*frames);
  if (!number || *number == 0) return std::string("frames is no whole number from 1 to 2^53-1");
  return ClientMessage(Gap{*number});
}

Parsed parse_object(const json::object& object) {
  const json::value* type = object.if_contains("type");
  if (type == nullptr || !type->is_string()) return std::string("a message without a type");
  const std::string_view name(type->get_string().data(), type->get_string().size());
  if (name == "flush") return parse_flush(object);
  if (name == "gap") return parse_gap(object);
  const bool alone = object.size() == 1;
  if (name == "reset" && alone) return ClientMessage(Reset{});
  if (name == "keepalive" && alone) return ClientMessage(Keepalive{});
  if (name == "end" && alone) return ClientMessage(End{});
  if (name == "reset" || name == "keepalive" || name == "end")
    return std::string(name) + " takes nothing more";
  return std::string("unknown type of message");
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
  std::string operator()(const Reset&) const { return R"({"type":"reset"})"; }
  std::string operator()(const Keepalive&) const { return R"({"type":"keepalive"})"; }
  std::string operator()(const End&) const { return R"({"type":"end"})"; }
};

}  // namespace

Result<ClientMessage, std::string> parse_client_message(std::string_view text) {
  // Commands are short: they are parsed on the stack.
  std::array<unsigned char, 1024> memory;
  json::monotonic_resource resource(memory.data(), memory.size());
  json::parse_options options;
  options.max_depth = 4;
  json::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error, &resource, options);
  if (error || !value.is_object()) return std::string("not a JSON object");
  return parse_object(value.get_object());
}

std::string to_json(const ClientMessage& message) { return std::visit(Writer{}, message); }

}  // namespace millrace
