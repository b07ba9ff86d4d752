// SPDX-License-Identifier: Apache-2.0
// Streams end with the credentials by which they were opened.
#include "service/pipelines/stream_permits.h"

#include <catch2/catch.hpp>

#include "tests/service/pipelines/tenants_under_test.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

const Time now = Clock::now();

int close_code_of(AdmissionUnderTest::Client& client) {
  const auto& close = client.outbox.queue().closing();
  return close ? close->code : 0;
}

}  // namespace

TEST_CASE_METHOD(Tenants, "a stream ends at its token's end, 30 s after a goaway") {
  expire("a", 100s);
  auto& client = open_as("a");
  (void)client.received();
  admission->permits().check(69s, now);
  CHECK(client.received().empty());
  admission->permits().check(70s, now);
  CHECK_THAT(client.received().at(0), Catch::Contains(R"("type":"goaway")"));
  admission->permits().check(99s, now);
  CHECK(client.received().empty());
  admission->permits().check(100s, now);
  CHECK_THAT(client.received().at(0),
             Catch::Contains(R"("code":"unauthenticated","message":"the token has expired")"));
  CHECK(close_code_of(client) == 4401);
  admission->permits().check(101s, now);
  CHECK(client.received().empty());
}

TEST_CASE_METHOD(Tenants, "a reload that revokes a token ends its streams, and no others") {
  auto& a = open_as("a");
  auto& b = open_as("b");
  auto& free = open_as("a", {.id = "left"});
  disconnect(free);
  (void)a.received(), (void)b.received();
  admission->permits().recheck(now);
  CHECK(a.received().empty());
  shared.gate.access.replace({.tenants = std::make_shared<const TenantList>(std::vector{
                                  TenantRule{.name = "b", .tokens = {token_of("b")}}})});
  admission->permits().recheck(now);
  CHECK_THAT(a.received().at(0),
             Catch::Contains(R"("code":"unauthenticated","message":"the token is not accepted")"));
  CHECK(close_code_of(a) == 4401);
  CHECK(b.received().empty());
}

TEST_CASE_METHOD(Tenants, "a token that is given to another tenant ends its streams") {
  auto& client = open_as("a");
  (void)client.received();
  shared.gate.access.replace({.tenants = std::make_shared<const TenantList>(std::vector{
                                  TenantRule{.name = "b", .tokens = {token_of("a")}}})});
  admission->permits().recheck(now);
  CHECK_THAT(client.received().at(0), Catch::Contains(R"("code":"unauthenticated")"));
}

TEST_CASE_METHOD(Tenants, "a reload that moves the end of a token moves that of its streams") {
  expire("a", 100s);
  auto& client = open_as("a");
  (void)client.received();
  expire("a", 200s);
  admission->permits().recheck(now);
  admission->permits().check(150s, now);
  CHECK(client.received().empty());
  admission->permits().check(200s, now);
  CHECK(client.received().size() == 1);
}

TEST_CASE_METHOD(Tenants, "a stream that waits for its client ends with its token") {
  expire("a", 100s);
  auto& client = open_as("a", {.id = "mic", .resume = true});
  client.stream->reset(now);
  disconnect(client);
  const auto waiting = [this] {
    bool open = false;
    admission->table().each([&](Stream& stream) { open = !stream.has_ended(); });
    return open;
  };
  admission->permits().check(99s, now);
  CHECK(waiting());
  admission->permits().check(100s, now);
  CHECK_FALSE(waiting());
}

TEST_CASE_METHOD(Tenants, "a client that continues its stream with a new token keeps it") {
  expire("a", 100s, "newer");
  auto& before = open_as("a", {.id = "mic", .resume = true});
  const std::string shown = resume_token_in(before.received().front());
  before.stream->reset(now);
  disconnect(before);
  auto& after = open_as(
      "newer",
      {.pipeline = "features", .id = "mic", .resume = true, .resumption = {{.token = shown}}});
  (void)after.received();
  admission->permits().check(100s, now);
  CHECK(after.received().empty());
  CHECK(live() == 1);
}

TEST_CASE_METHOD(Tenants, "streams without a credential stay open when tokens become necessary") {
  shared.gate.access.replace({});
  auto& client = open({.pipeline = "features"});
  (void)client.received();
  use({.name = "a"});
  admission->permits().recheck(now);
  CHECK(client.received().empty());
}
