// SPDX-License-Identifier: Apache-2.0
// Who gets no stream for want of memory, and whose ends for it.
#include <catch2/catch.hpp>

#include "streams/stream.h"
#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using test::Link;

TEST_CASE("while memory is short nobody gets a stream, and who has one keeps it") {
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

TEST_CASE("the largest stream is that which holds the most and was not ended") {
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
  AdmissionUnderTest::hang_up(small);
  CHECK(d.admission->table().largest() == nullptr);
}

TEST_CASE("results that nobody has taken make a stream large too, until it is ended for that") {
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
  const auto told = client.told();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), Catch::Contains("no_room"));
  AdmissionUnderTest::hang_up(client);
  CHECK(d.stats().results.value() == 0);
}

TEST_CASE("a client is sent the end when it has all results, and then loses nothing more") {
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
  const auto told = client.told();
  CHECK(d.admission->table().largest() == nullptr);
  stream->evict(Clock::now());
  REQUIRE(told.size() == 3);
  CHECK_THAT(told[1], Catch::Contains(R"("seq":0)"));
  CHECK_THAT(told[2], Catch::Contains("closed"));
  CHECK(client.outbox.queue().closing()->code == 1000);
}

TEST_CASE("a client without a worker is told so, however short memory is") {
  AdmissionUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.stream->frames(some, Clock::now());
  Stream* stream = d.admission->table().largest();
  REQUIRE(stream);
  stream->dropped(ErrorCode::no_worker, Clock::now());
  CHECK(d.admission->table().largest() == nullptr);
  stream->evict(Clock::now());
  CHECK_THAT(client.told().back(), Catch::Contains("no_worker"));
}

TEST_CASE("frames of a client that has ended make no stream large: its end needs them") {
  AdmissionUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.stream->frames(some, Clock::now());
  REQUIRE(d.admission->table().largest());
  client.stream->end(Clock::now());
  CHECK(d.admission->table().largest() == nullptr);
}
