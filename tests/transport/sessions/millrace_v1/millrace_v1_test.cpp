// SPDX-License-Identifier: Apache-2.0
// How millrace.v1 answers an upgrade.
#include "transport/sessions/millrace_v1/millrace_v1.h"

#include <catch2/catch.hpp>

#include "tests/transport/sessions/server_fixture.h"

using namespace millrace;

namespace {

struct UpgradeFixture : ServerFixture {
  unsigned status(std::string target, bool upgrades = true) {
    HttpQuery query{.method = "GET",
                    .target = std::move(target),
                    .version = 11,
                    .fields = {{"Host", "here"},
                               {"Connection", "Upgrade"},
                               {"Sec-WebSocket-Version", "13"},
                               {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
    if (upgrades) query.fields.emplace_back("Upgrade", "websocket");
    const auto accepted = protocol.accept(query, scope, {.peer = "127.0.0.1:1"});
    return accepted ? 101 : accepted.error().status;
  }
};

}  // namespace

TEST_CASE_METHOD(UpgradeFixture, "parameters are checked only after the upgrade fields") {
  CHECK(status("/v1/stream?rate=x", false) == 426);
  CHECK(status("/v1/stream?rate=x") == 400);
  CHECK(status("/v1/stream") == 101);
}

TEST_CASE_METHOD(UpgradeFixture, "the upgrade is refused if the stream is not admitted") {
  CHECK(status("/v1/stream?pipeline=other") == 404);
  CHECK(status("/v1/stream?id=full") == 503);
  CHECK(admission.lost.empty());
}
