// SPDX-License-Identifier: Apache-2.0
#include "transport/access/client_access.h"

#include <catch2/catch.hpp>

#include "transport/access/presented_token.h"

using namespace millrace;

namespace {

constexpr Duration wall_now = std::chrono::hours(500'000);

std::shared_ptr<const TokenList> list_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (const auto& token : tokens)
    text += to_hex(digest_of(token)) + " t" + std::to_string(text.size()) + "\n";
  return std::make_shared<const TokenList>(*TokenList::parse(text));
}

TenantToken token(std::string_view text, std::optional<Duration> until = {}) {
  return {.digest = digest_of(text), .until = until};
}

// Who the owner of the token is, or why it is refused; then what it may do.
struct Access : ClientAccess {
  explicit Access(AccessRules rules = {}) : ClientAccess([] { return wall_now; }) {
    replace(std::move(rules));
  }
  explicit Access(std::vector<TenantRule> tenants)
      : Access({.tenants = std::make_shared<const TenantList>(std::move(tenants))}) {}

  std::string refusal(std::string_view token) const {
    const auto shown = identify(token);
    return shown ? "" : std::string(shown.error());
  }
  std::string refusal(const HttpQuery& query) const {
    const auto shown = identify(query);
    return shown ? "" : std::string(shown.error());
  }
  Grant granted(std::string_view token) const { return *grant(*identify(token)); }
};

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

TEST_CASE("without files every request is accepted, as a client of the default tenant") {
  Access access;
  CHECK(access.refusal("").empty());
  CHECK(access.refusal("abc").empty());
  CHECK(access.refusal(query_of({{"Authorization", "a"}, {"Authorization", "b"}})).empty());
  const Grant grant = access.granted("");
  CHECK(grant.tenant->name() == "default");
  CHECK(grant.tenant->prefix().empty());
  CHECK(grant.allows("any"));
  CHECK(grant.tenant->streams.limit() > 1'000'000'000);
}

TEST_CASE("with a list only its tokens are accepted, and never one in the URL") {
  Access access({.tokens = list_of({"abc", std::string(4096, 'x'), std::string(4097, 'x')})});
  const auto accepts = [&](const std::string& token) {
    const std::string refused = access.refusal(token);
    if (!token.empty() && !refused.empty()) CHECK(refused.find(token) == refused.npos);
    CHECK(refused == access.refusal(query_of({{"Authorization", "Bearer " + token}})));
    return refused.empty();
  };
  CHECK(accepts("abc"));
  CHECK(accepts(std::string(4096, 'x')));
  CHECK_FALSE(accepts(std::string(4097, 'x')));
  for (const char* wrong : {"", "ab", "abcd", "ABC"}) CHECK_FALSE(accepts(wrong));
  CHECK_FALSE(access.refusal(query_of({}, "/v1/stream?token=abc")).empty());
  CHECK_FALSE(
      access.refusal(query_of({{"Authorization", "Bearer abc"}, {"Authorization", "Bearer abc"}}))
          .empty());
  CHECK_FALSE(access
                  .refusal(query_of(
                      {{"Authorization", "Bearer abc"}, {"Sec-WebSocket-Protocol", "token, x"}}))
                  .empty());
}

TEST_CASE("a new list counts for the next client, and for credentials shown before") {
  Access access({.tokens = list_of({"abc"})});
  const Credential shown = *access.identify("abc");
  CHECK(access.grant(shown)->tenant->name() == "default");
  access.replace({.tokens = list_of({"new"})});
  CHECK(access.refusal("abc") == "the token is not accepted");
  CHECK(access.grant(shown).error() == "the token is not accepted");
  CHECK(access.refusal("new").empty());
  access.replace({.tokens = list_of({})});
  CHECK_FALSE(access.refusal("new").empty());
  access.replace({});
  CHECK(access.refusal("").empty());
}

TEST_CASE("the token of a tenant grants its pipelines, and the prefix of its streams") {
  Access access({{.name = "acme", .tokens = {token("a"), token("b")}, .pipelines = {{"english"}}},
                 {.name = "other", .tokens = {token("c")}}});
  CHECK(access.granted("a").tenant->name() == "acme");
  CHECK(access.granted("b").tenant == access.granted("a").tenant);
  CHECK(access.granted("a").tenant->prefix() == "acme/");
  CHECK(access.granted("a").allows("english"));
  CHECK_FALSE(access.granted("a").allows("german"));
  CHECK(access.granted("c").tenant->name() == "other");
  CHECK(access.granted("c").allows("german"));
  CHECK(access.refusal("d") == "the token is not accepted");
  CHECK(access.refusal("") == "a token is required, such as Authorization: Bearer TOKEN");
}

TEST_CASE("a token is refused from its end on") {
  using namespace std::chrono_literals;
  Access access({{.name = "acme", .tokens = {token("a", wall_now + 1s), token("b", wall_now)}}});
  CHECK(access.granted("a").until == wall_now + 1s);
  CHECK(access.refusal("b") == "the token has expired");
}

TEST_CASE("tokens of the list are of the default tenant, which may have limits") {
  Access access({.tokens = list_of({"abc"}),
                 .tenants = std::make_shared<const TenantList>(std::vector<TenantRule>{
                     {.name = "default", .pipelines = {{"english"}}, .streams = 2}})});
  const Grant grant = access.granted("abc");
  CHECK(grant.tenant->name() == "default");
  CHECK(grant.tenant->streams.limit() == 2);
  CHECK_FALSE(grant.allows("german"));
  access.replace({.tokens = list_of({"abc"})});
  CHECK(access.granted("abc").tenant == grant.tenant);
  CHECK(grant.tenant->streams.limit() > 1'000'000'000);
}

TEST_CASE("when no token is needed any more, one that was accepted still is") {
  Access access({.tokens = list_of({"abc"})});
  const Credential shown = *access.identify("abc");
  access.replace({});
  CHECK(access.grant(shown)->tenant->name() == "default");
}

TEST_CASE("a reload changes the limits of a tenant, and not what it uses") {
  Access access({{.name = "acme", .tokens = {token("a")}, .streams = 2}});
  Tenant& tenant = *access.granted("a").tenant;
  const Share share(tenant.streams, 1);
  access.replace({.tenants = std::make_shared<const TenantList>(std::vector<TenantRule>{
                      {.name = "acme", .tokens = {token("b")}, .streams = 1}})});
  CHECK(access.granted("b").tenant == &tenant);
  CHECK(tenant.streams.is_full());
  CHECK_FALSE(access.refusal("a").empty());
}

TEST_CASE("clients of a tenant's listener need no token while the tenant exists") {
  Access access({{.name = "acme", .pipelines = {{"english"}}}});
  const Credential listener = ListenerTenant{"acme"};
  CHECK(access.grant(listener)->tenant->name() == "acme");
  CHECK_FALSE(access.grant(listener)->allows("german"));
  access.replace({.tenants = std::make_shared<const TenantList>()});
  CHECK_FALSE(access.grant(listener).has_value());
}
