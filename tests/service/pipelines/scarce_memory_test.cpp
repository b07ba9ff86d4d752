// SPDX-License-Identifier: Apache-2.0
// Refusals and evictions of streams when memory is short.
#include <catch2/catch.hpp>

#include "streams/stream.h"
#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using test::Link;

TEST_CASE("while memory is short new streams are refused, and open ones continue") {
  AdmissionUnderTest d;
  auto& first = d.open();
  d.shared.gate.memory_short = true;
  const auto& error = d.open({.id = "late"}).error;
  CHECK(error->status == 503);
  CHECK(error->reason == Refusal::overload);
  CHECK(error->retry_after.has_value());
  CHECK(d.shared.connections.taken() == 1);
  d.send_row(first);
  CHECK(d.live() == 1);
  d.shared.gate.memory_short = false;
  CHECK(d.open({.id = "late"}).stream);
}

TEST_CASE("the largest stream is the one that holds the most and was not evicted") {
  AdmissionUnderTest d;
  auto& small = d.open({.id = "small"});
  auto& large = d.open({.id = "large"});
  CHECK(d.admission->table().largest() == nullptr);
  const std::vector<std::byte> some(20'000);
  small.stream->frames(some, Clock::now());
  large.stream->frames(some, Clock::now());
  large.stream->frames(some, Clock::now());
  Stream* largest = d.admission->table().largest();
  REQUIRE(largest);
  CHECK(largest->settings().name == "large");
  CHECK(largest->reclaimable() >= 40'000);
  largest->evict(Clock::now());
  CHECK(large.outbox.queue().closing()->code == 1013);
  CHECK(d.admission->table().largest()->settings().name == "small");
  AdmissionUnderTest::disconnect(small);
  CHECK(d.admission->table().largest() == nullptr);
}

TEST_CASE("unwritten results count in the size of a stream, and its eviction drops them") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  Stream* largest = d.admission->table().largest();
  REQUIRE(largest);
  CHECK(largest->reclaimable() > 20'000);
  largest->evict(Clock::now());
  CHECK(client.outbox.queue().unsent() < 1'000);
  const auto received = client.received();
  REQUIRE(received.size() == 1);
  CHECK_THAT(received.front(), Catch::Contains("no_room"));
  AdmissionUnderTest::disconnect(client);
  CHECK(d.stats().results.value() == 0);
}

TEST_CASE("a stream that has sent all results and its end is not evicted") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  client.stream->end(Clock::now());
  d.run();
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  Stream* stream = d.admission->table().largest();
  REQUIRE(stream);
  d.answer(worker);                                 // END
  CHECK(d.admission->table().largest() == stream);  // the result waits
  const auto received = client.received();
  CHECK(d.admission->table().largest() == nullptr);
  stream->evict(Clock::now());
  REQUIRE(received.size() == 3);
  CHECK_THAT(received[1], Catch::Contains(R"("seq":0)"));
  CHECK_THAT(received[2], Catch::Contains("closed"));
  CHECK(client.outbox.queue().closing()->code == 1000);
}

TEST_CASE("a client without a worker receives that error even if memory is short") {
  AdmissionUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.stream->frames(some, Clock::now());
  Stream* stream = d.admission->table().largest();
  REQUIRE(stream);
  stream->dropped(ErrorCode::no_worker, Clock::now());
  CHECK(d.admission->table().largest() == nullptr);
  stream->evict(Clock::now());
  CHECK_THAT(client.received().back(), Catch::Contains("no_worker"));
}

TEST_CASE("frames of an ended stream do not count in its size, because its end needs them") {
  AdmissionUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.stream->frames(some, Clock::now());
  REQUIRE(d.admission->table().largest());
  client.stream->end(Clock::now());
  CHECK(d.admission->table().largest() == nullptr);
}
