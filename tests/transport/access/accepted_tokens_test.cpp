// SPDX-License-Identifier: Apache-2.0
#include "transport/access/accepted_tokens.h"

#include <catch2/catch.hpp>

#include "transport/access/presented_token.h"

using namespace millrace;

namespace {

AcceptedTokens::List list_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (const auto& token : tokens)
    text += to_hex(digest_of(token)) + " t" + std::to_string(text.size()) + "\n";
  return std::make_shared<const TokenList>(*TokenList::parse(text));
}

HttpQuery query_of(HttpFields fields, std::string target = "/v1/stream") {
  return {.method = "GET", .target = std::move(target), .fields = std::move(fields)};
}

// The token in a field; "two fields" or "two tokens" if the request is wrong.
std::string presented(HttpFields fields) {
  const HttpQuery query = query_of(std::move(fields));
  const auto token = presented_token(query);
  if (token) return std::string(*token);
  return token.error() == TokenFault::two_fields ? "two fields" : "two tokens";
}

std::string authorization(std::string value) { return presented({{"Authorization", value}}); }
std::string subprotocols(std::string value) {
  return presented({{"Sec-WebSocket-Protocol", value}});
}

}  // namespace

TEST_CASE("the field Authorization presents a token with the schemes Bearer and Token") {
  CHECK(authorization("Bearer abc") == "abc");
  CHECK(authorization("bearer abc") == "abc");
  CHECK(authorization("TOKEN abc") == "abc");
  CHECK(authorization("Bearer   abc") == "abc");
  CHECK(authorization("Bearer abc=") == "abc=");
  for (const char* none : {"", "Bearer", "Bearer ", "abc", "Basic abc", "Bearerabc", "Bearer\tabc"})
    CHECK(authorization(none).empty());
  CHECK(presented({{"authorization", "Bearer abc"}}) == "abc");
  CHECK(presented({{"Proxy-Authorization", "Bearer abc"}}).empty());
}

TEST_CASE("the list of subprotocols presents a token in two forms") {
  CHECK(subprotocols("realtime, openai-insecure-api-key.abc, openai-beta.realtime-v1") == "abc");
  CHECK(subprotocols("token, abc") == "abc");
  CHECK(subprotocols("token,abc,millrace.v1") == "abc");
  CHECK(subprotocols("millrace.v1 , token ,, abc") == "abc");
  CHECK(subprotocols("token, token") == "token");
  CHECK(presented({{"Sec-WebSocket-Protocol", "token"}, {"sec-websocket-protocol", "abc"}}) ==
        "abc");
  for (const char* none : {"millrace.v1", "token", "abc, token", "Token, abc", "tokens, abc",
                           "openai-insecure-api-key.", "OpenAI-insecure-api-key.abc"})
    CHECK(subprotocols(none).empty());
}

TEST_CASE("a request presents one token") {
  CHECK(presented({{"Authorization", "Bearer abc"}, {"Authorization", "Bearer abc"}}) ==
        "two fields");
  CHECK(presented({{"Authorization", "Bearer abc"}, {"Sec-WebSocket-Protocol", "token, abc"}}) ==
        "abc");
  CHECK(presented({{"Authorization", "Bearer abc"}, {"Sec-WebSocket-Protocol", "token, abd"}}) ==
        "two tokens");
  CHECK(subprotocols("token, abc, openai-insecure-api-key.abd") == "two tokens");
  CHECK(presented({{"Authorization", "Basic x"}, {"Sec-WebSocket-Protocol", "token, abc"}}) ==
        "abc");
}

TEST_CASE("without a list every request is accepted") {
  AcceptedTokens tokens;
  CHECK_FALSE(tokens.refusal(""));
  CHECK_FALSE(tokens.refusal("abc"));
  CHECK_FALSE(tokens.refusal(query_of({{"Authorization", "a"}, {"Authorization", "b"}})));
}

TEST_CASE("with a list only its tokens are accepted, and never one in the URL") {
  AcceptedTokens tokens(list_of({"abc", std::string(4096, 'x'), std::string(4097, 'x')}));
  const auto accepts = [&](const std::string& token) {
    const auto refused = tokens.refusal(token);
    if (!token.empty() && refused) CHECK(refused->find(token) == refused->npos);
    CHECK(refused == tokens.refusal(query_of({{"Authorization", "Bearer " + token}})));
    return !refused;
  };
  CHECK(accepts("abc"));
  CHECK(accepts(std::string(4096, 'x')));
  CHECK_FALSE(accepts(std::string(4097, 'x')));
  for (const char* wrong : {"", "ab", "abcd", "ABC"}) CHECK_FALSE(accepts(wrong));
  CHECK(tokens.refusal(query_of({}, "/v1/stream?token=abc")));
  CHECK(
      tokens.refusal(query_of({{"Authorization", "Bearer abc"}, {"Authorization", "Bearer abc"}})));
  CHECK(tokens.refusal(
      query_of({{"Authorization", "Bearer abc"}, {"Sec-WebSocket-Protocol", "token, x"}})));
}

TEST_CASE("a new list counts for the next client") {
  AcceptedTokens tokens(list_of({"abc"}));
  tokens.replace(list_of({"new"}));
  CHECK(tokens.refusal("abc") == "the token is not accepted");
  CHECK_FALSE(tokens.refusal("new"));
  tokens.replace(list_of({}));
  CHECK(tokens.refusal("new"));
  tokens.replace(nullptr);
  CHECK_FALSE(tokens.refusal(""));
}
