// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/upgrade.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cctype>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/http/host.h"

namespace millrace {
namespace {

RequestError no_upgrade(unsigned status, std::string message) {
  return {.status = status, .message = std::move(message), .reason = Refusal::handshake};
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// True if `matches` is true for an item of the comma-separated lists in the fields of that name.
template <class Matches>
bool listed(const HttpQuery& query, std::string_view name, Matches matches) {
  for (std::string_view list : query.all(name)) {
    while (!list.empty()) {
      const auto item = list.substr(0, list.find(','));
      if (matches(trimmed(item))) return true;
      list.remove_prefix(std::min(list.size(), item.size() + 1));
    }
  }
  return false;
}

// 16 bytes in base64.
bool is_key(std::string_view key) {
  const auto in_base64 = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/'; };
  return key.size() == 24 && key.ends_with("==") &&
         std::ranges::all_of(key.substr(0, 22), in_base64);
}

}  // namespace

Result<Upgrade, RequestError> parse_upgrade(const HttpQuery& query, std::string_view supported) {
  const auto is = [](std::string_view word) {
    return [word](std::string_view item) { return boost::beast::iequals(item, word); };
  };
  if (!listed(query, "Upgrade", is("websocket")) || !listed(query, "Connection", is("upgrade")))
    return no_upgrade(426, "the request must be a WebSocket upgrade");
  const auto versions = query.all("Sec-WebSocket-Version");
  if (versions.size() != 1 || trimmed(versions[0]) != "13")
    return no_upgrade(426, "only version 13 of WebSocket is supported");
  if (query.method != "GET") return no_upgrade(405, "the method of an upgrade must be GET");
  const auto keys = query.all("Sec-WebSocket-Key");
  if (query.version != 11 || query.all("Host").size() != 1 || keys.size() != 1 || !is_key(keys[0]))
    return no_upgrade(400, "a malformed WebSocket upgrade");

  // Subprotocols are case-sensitive.
  const bool ours = listed(query, "Sec-WebSocket-Protocol",
                           [&](std::string_view item) { return item == supported; });
  if (!ours && !query.all("Sec-WebSocket-Protocol").empty())
    return no_upgrade(400, "the only supported subprotocol is " + std::string(supported));
  return Upgrade{.key = std::string(keys[0]), .subprotocol = ours ? supported : ""};
}

bool is_question(const HttpQuery& query) {
  return query.all("Upgrade").empty() && query.all("Sec-WebSocket-Key").empty();
}

std::optional<RequestError> refuse_page(const HttpQuery& query, const PageRules& rules) {
  if (rules.loopback && !is_for_loopback(query))
    return no_upgrade(421,
                      "this listener is on loopback: Host must be localhost or a loopback address");
  if (!is_from(query, rules.origins) && !is_from_own_page(query))
    return no_upgrade(
        403,
        "pages of this origin may not open streams: it is not in [listen] origins. A "
        "client that is no page must not send Origin: with Python's websocket-client, "
        "set suppress_origin=True");
  if (query.method != "GET" && query.method != "HEAD")
    return no_upgrade(405, "the method must be GET or HEAD");
  return std::nullopt;
}

HttpAnswer answer_to(const RequestError& error) {
  HttpAnswer answer{.status = error.status, .body = R"({"error":{"code":")"};
  answer.body.append(name_of(code_of(error))).append(R"(",)");
  if (!error.parameter.empty()) {
    // A name that is not UTF-8 would make the body invalid JSON. One with control characters could
    // begin a terminal's commands.
    append_string(answer.body += R"("parameter":)",
                  is_printable(error.parameter, error.parameter.size()) ? error.parameter : "?");
    answer.body += ',';
  }
  append_string(answer.body += R"("message":)", error.message);
  answer.body += "}}";
  if (error.status == 405) answer.fields.emplace_back("Allow", "GET, HEAD");
  if (error.status == 426) {
    answer.fields.emplace_back("Upgrade", "websocket");
    answer.fields.emplace_back("Sec-WebSocket-Version", "13");
  }
  if (error.retry_after)
    answer.fields.emplace_back("Retry-After", std::to_string(error.retry_after->count()));
  return answer;
}

}  // namespace millrace
