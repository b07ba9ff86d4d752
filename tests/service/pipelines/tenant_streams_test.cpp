// SPDX-License-Identifier: Apache-2.0
// Streams of tenants: their names, their limits, and that no tenant reaches those of another one.
#include <catch2/catch.hpp>

#include "service/admin/stream_walk.h"
#include "tests/service/pipelines/tenants_under_test.h"

using namespace millrace;

TEST_CASE_METHOD(Tenants, "two tenants have streams of the same id, which each knows as its own") {
  auto& a = open_as("a", {.id = "mic"});
  auto& b = open_as("b", {.id = "mic"});
  CHECK_THAT(a.received().front(), Catch::Contains(R"("stream":"mic")"));
  CHECK_THAT(b.received().front(), Catch::Contains(R"("stream":"mic")"));
  CHECK_THAT(names(), Catch::Contains("a/mic ") && Catch::Contains("b/mic "));
  CHECK(status(open_as("a", {.id = "mic"})) == 409);
  disconnect(a);
  CHECK(status(open_as("a", {.id = "mic"})) == 101);
}

TEST_CASE_METHOD(Tenants, "a name that the service chooses is in its tenant") {
  CHECK_THAT(open_as("a").received().front(), Catch::Contains(R"("stream":"s-)"));
  CHECK_THAT(names(), Catch::StartsWith("a/s-"));
}

TEST_CASE_METHOD(Tenants, "a client without a token is refused, also after a reload") {
  const ClientIdentity before = known("a");
  CHECK(open({}, {}).error->status == 401);
  shared.gate.access.replace({.tenants = std::make_shared<const TenantList>()});
  CHECK(open({}, before).error->status == 401);
  CHECK(admission->refusal({}, before)->status == 401);
}

TEST_CASE_METHOD(Tenants,
                 "a pipeline that the tenant may not use is forbidden, and is not listed") {
  use({.pipelines = {{"features"}}});
  CHECK(status(open_as("a")) == 101);
  const auto& refused = open({}, known("a")).error;
  CHECK(refused->status == 403);
  CHECK(code_of(*refused) == ErrorCode::forbidden);
  CHECK(refused->reason == Refusal::parameter);
  CHECK(admission->refusal({}, known("a"))->status == 403);
  CHECK(open({.pipeline = "none"}, known("a")).error->message ==
        "there is no pipeline none; there are: features");
}

TEST_CASE_METHOD(Tenants,
                 "a stream beyond the tenant's limit is refused until another one is over") {
  use({.streams = 1});
  auto& first = open_as("a");
  const auto& refused = open_as("a").error;
  CHECK(refused->status == 429);
  CHECK(code_of(*refused) == ErrorCode::too_fast);
  CHECK(refused->retry_after.has_value());
  CHECK(refused->reason == Refusal::limit_tenant);
  CHECK(admission->refusal({.pipeline = "features"}, known("a"))->status == 429);
  CHECK(status(open_as("b")) == 101);
  disconnect(first);
  run();
  CHECK(status(open_as("a")) == 101);
}

TEST_CASE_METHOD(Tenants, "a refused stream takes no part of the tenant's limit") {
  use({.streams = 1});
  CHECK(status(open_as("a", {.id = "x", .format = "opus"})) == 415);
  CHECK(status(open_as("b", {.id = "x"})) == 101);
  auto& first = open_as("a", {.id = "x"});
  CHECK(status(first) == 101);
  CHECK(status(open_as("a", {.id = "x"})) == 429);
}

TEST_CASE_METHOD(Tenants, "streams that are opened too fast are refused, with the time to wait") {
  use({.opens = RateRule(0.1, 2)});
  CHECK(status(open_as("a")) == 101);
  CHECK(status(open_as("a")) == 101);
  const auto& refused = open_as("a").error;
  CHECK(refused->status == 429);
  CHECK(refused->retry_after->count() >= 9);
  CHECK(refused->retry_after->count() <= 10);
  CHECK(status(open_as("b")) == 101);
}

TEST_CASE_METHOD(Tenants, "the resume token of a stream is wrong for another tenant") {
  auto& mine = open_as("a", {.id = "mic", .resume = true});
  const std::string shown = resume_token_in(mine.received().front());
  disconnect(mine);
  const StreamRequest request{
      .pipeline = "features", .id = "mic", .resume = true, .resumption = {{.token = shown}}};
  CHECK(open_as("b", request).error->status == 403);
  CHECK(admission->refusal(request, known("b"))->status == 403);
  CHECK_FALSE(admission->thread_of(request, known("b")));
  CHECK(status(open_as("a", request)) == 101);
}

TEST_CASE_METHOD(Tenants, "a list of one tenant has and counts only its streams") {
  open_as("a", {.id = "mic"});
  open_as("b", {.id = "mic"});
  const auto listed = [this](std::string tenant) {
    StreamWalk walk({.tenant = std::move(tenant)}, Clock::now());
    while (!walk.step(admission->table())) {
    }
    const StreamList list = walk.take();
    return std::to_string(list.total) + (list.lines.empty() ? "" : ' ' + list.lines.at(0).name);
  };
  CHECK(listed("a") == "1 a/mic");
  CHECK(listed("b") == "1 b/mic");
  CHECK(listed("default") == "0");
  shared.gate.access.replace({});
  open({.pipeline = "features", .id = "plain"});
  CHECK(listed("default") == "1 plain");
}
