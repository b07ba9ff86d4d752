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

// 16 bytes in base64.
bool is_key(std::string_view key) {
  const auto in_base64 = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/'; };
  return key.size() == 24 && key.ends_with("==") &&
         std::ranges::all_of(key.substr(0, 22), in_base64);
}

}  // namespace

Result<Upgrade, RequestError> parse_upgrade(const HttpQuery& query, std::string_view supported) {
  const auto lists = [&](std::string_view name, std::string_view word) {
    return std::ranges::any_of(query.items(name), [word](std::string_view item) {
      return boost::beast::iequals(item, word);
    });
  };
  if (!lists("Upgrade", "websocket") || !lists("Connection", "upgrade"))
    return no_upgrade(426, "the request must be a WebSocket upgrade");
  const auto versions = query.all("Sec-WebSocket-Version");
  if (versions.size() != 1 || versions[0] != "13")
    return no_upgrade(426, "only version 13 of WebSocket is supported");
  if (query.method != "GET") return no_upgrade(405, "the method of an upgrade must be GET");
  const auto keys = query.all("Sec-WebSocket-Key");
  if (query.version != 11 || query.all("Host").size() != 1 || keys.size() != 1 || !is_key(keys[0]))
    return no_upgrade(400, "a malformed WebSocket upgrade");

  // Subprotocols are case-sensitive.
  const auto listed = query.items("Sec-WebSocket-Protocol");
  const bool ours = std::ranges::find(listed, supported) != listed.end();
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
  if (error.status == 401) answer.fields.emplace_back("WWW-Authenticate", "Bearer");
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
