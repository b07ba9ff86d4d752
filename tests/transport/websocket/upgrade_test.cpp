// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/upgrade.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

HttpQuery good() {
  return {.method = "GET",
          .target = "/v1/stream",
          .version = 11,
          .fields = {{"Host", "here"},
                     {"Upgrade", "websocket"},
                     {"Connection", "keep-alive, Upgrade"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
}

HttpQuery with(std::string name, std::string value) {
  HttpQuery query = good();
  std::erase_if(query.fields, [&](const auto& field) { return field.first == name; });
  if (!value.empty()) query.fields.emplace_back(std::move(name), std::move(value));
  return query;
}

unsigned status(const HttpQuery& query) {
  if (const auto refused = refuse_page(query)) return refused->status;
  const auto upgrade = parse_upgrade(query, subprotocol);
  return upgrade ? 101 : upgrade.error().status;
}

}  // namespace

TEST_CASE("a plain upgrade is accepted") {
  const auto upgrade = parse_upgrade(good(), subprotocol);
  REQUIRE(upgrade.has_value());
  CHECK(upgrade->key == "dGhlIHNhbXBsZSBub25jZQ==");
  CHECK(upgrade->subprotocol.empty());
}

TEST_CASE("without an upgrade, or with another version, the answer asks for version 13") {
  CHECK(status(with("Upgrade", "")) == 426);
  CHECK(status(with("Upgrade", "h2c")) == 426);
  CHECK(status(with("Connection", "keep-alive")) == 426);
  CHECK(status(with("Sec-WebSocket-Version", "12")) == 426);
  CHECK(status(with("Sec-WebSocket-Version", "")) == 426);

  const auto answer = answer_to(parse_upgrade(with("Upgrade", ""), subprotocol).error());
  CHECK(std::ranges::count(answer.fields, HttpFields::value_type("Sec-WebSocket-Version", "13")) ==
        1);
}

TEST_CASE("an upgrade must have exactly one key of 16 bytes") {
  CHECK(status(with("Sec-WebSocket-Key", "")) == 400);
  CHECK(status(with("Sec-WebSocket-Key", "c2hvcnQ=")) == 400);
  CHECK(status(with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZ!==")) == 400);
  HttpQuery twice = good();
  twice.fields.emplace_back("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
  CHECK(status(twice) == 400);
}

TEST_CASE("a request must have exactly one host") {
  CHECK(status(with("Host", "")) == 400);
  HttpQuery twice = good();
  twice.fields.emplace_back("host", "there");
  CHECK(status(twice) == 400);
}

TEST_CASE("the subprotocol millrace.v1 is chosen from several, and others are refused") {
  const auto ours = parse_upgrade(with("Sec-WebSocket-Protocol", "chat, millrace.v1"), subprotocol);
  REQUIRE(ours.has_value());
  CHECK(ours->subprotocol == "millrace.v1");
  CHECK(status(with("Sec-WebSocket-Protocol", "chat")) == 400);
  CHECK(status(with("Sec-WebSocket-Protocol", "millrace.v2")) == 400);
  CHECK(status(with("Sec-WebSocket-Protocol", "MILLRACE.V1")) == 400);
}

TEST_CASE("beside a token, millrace.v1 must be listed, and the token is not part of any answer") {
  const auto beside =
      parse_upgrade(with("Sec-WebSocket-Protocol", "token, secret, millrace.v1"), subprotocol);
  REQUIRE(beside.has_value());
  CHECK(beside->subprotocol == "millrace.v1");
  const auto alone = parse_upgrade(with("Sec-WebSocket-Protocol", "token, secret"), subprotocol);
  REQUIRE(alone.has_error());
  CHECK(alone.error().status == 400);
  CHECK(answer_to(alone.error()).body.find("secret") == std::string::npos);
}

TEST_CASE("another method or an old HTTP version is refused") {
  HttpQuery query = good();
  query.method = "POST";
  CHECK(status(query) == 405);
  CHECK(answer_to(*refuse_page(query)).fields == HttpFields{{"Allow", "GET, HEAD"}});
  query.method = "HEAD";
  CHECK(status(query) == 405);
  query = good();
  query.version = 10;
  CHECK(status(query) == 400);
}

TEST_CASE(
    "an Origin that is the request's own is allowed, if its host is localhost or an address") {
  const auto from = [](std::string host, std::string origin) {
    HttpQuery query = with("Host", std::move(host));
    query.fields.emplace_back("Origin", std::move(origin));
    return status(query);
  };
  CHECK(from("127.0.0.1:8080", "http://127.0.0.1:8080") == 101);
  CHECK(from("localhost", "http://localhost") == 101);
  CHECK(from("[::1]:8080", "http://[::1]:8080") == 101);
  CHECK(from("192.168.1.5:8080", "http://192.168.1.5:8080") == 101);
  CHECK(from("127.0.0.1:8080", "http://127.0.0.1:8081") == 403);
  CHECK(from("127.0.0.1:8080", "http://localhost:8080") == 403);
  CHECK(from("speech.example", "http://speech.example") == 403);
  CHECK(from("127.0.0.1:8080", "null") == 403);
  CHECK(from("127.0.0.1:8080", "file://") == 403);
}

TEST_CASE("a refusal is JSON that names the parameter") {
  const auto answer = answer_to(RequestError{.status = 503,
                                             .parameter = "pipeline",
                                             .message = "no \"room\"",
                                             .retry_after = std::chrono::seconds(3)});
  CHECK(answer.body ==
        R"({"error":{"code":"no_room","parameter":"pipeline","message":"no \"room\""}})");
  CHECK(answer.fields == HttpFields{{"Retry-After", "3"}});
  for (const char* unfit : {"\xff", "\xc2\x9b", "\x7f", "\xe2\x80\xae"})
    CHECK(answer_to(RequestError{.parameter = unfit, .message = "no such parameter"}).body ==
          R"({"error":{"code":"schema","parameter":"?","message":"no such parameter"}})");
  CHECK(answer_to(RequestError{.status = 503, .message = "later", .reason = Refusal::draining})
            .body == R"({"error":{"code":"stopping","message":"later"}})");
}
