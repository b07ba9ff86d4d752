// SPDX-License-Identifier: Apache-2.0
// Who gets no stream for want of memory, and whose ends for it.
#include <catch2/catch.hpp>

#include "service/live_stream.h"
#include "tests/service/door_under_test.h"

using namespace millrace;
using test::Link;

TEST_CASE("while memory is short nobody gets a stream, and who has one keeps it") {
  DoorUnderTest d;
  auto& first = d.open();
  d.admission.gate.memory_short = true;
  const auto& error = d.open({.id = "late"}).error;
  CHECK(error->status == 503);
  CHECK(error->reason == Refusal::overload);
  CHECK(error->retry_after.has_value());
  CHECK(d.admission.connections.taken() == 1);
  d.send_row(first);
  CHECK(d.live() == 1);
  d.admission.gate.memory_short = false;
  CHECK(d.open({.id = "late"}).sink);
}

TEST_CASE("the largest stream is that which holds the most and was not ended") {
  DoorUnderTest d;
  auto& small = d.open({.id = "small"});
  auto& large = d.open({.id = "large"});
  CHECK(d.door->table().largest() == nullptr);
  const std::vector<std::byte> some(20'000);
  small.sink->frames(some, Clock::now());
  large.sink->frames(some, Clock::now());
  large.sink->frames(some, Clock::now());
  LiveStream* largest = d.door->table().largest();
  REQUIRE(largest);
  CHECK(largest->name() == "large");
  CHECK(largest->held() >= 40'000);
  largest->evict(Clock::now());
  CHECK(large.outbox.close()->code == 1013);
  CHECK(d.door->table().largest()->name() == "small");
  DoorUnderTest::hang_up(small);
  CHECK(d.door->table().largest() == nullptr);
}

TEST_CASE("results that nobody has taken make a stream large too, until it is ended for that") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  LiveStream* largest = d.door->table().largest();
  REQUIRE(largest);
  CHECK(largest->held() > 20'000);
  largest->evict(Clock::now());
  CHECK(client.outbox.unsent() < 1'000);
  const auto told = client.told();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), Catch::Contains("no_room"));
  DoorUnderTest::hang_up(client);
  CHECK(d.stats().results.value() == 0);
}

TEST_CASE("a client is sent the end when it has all results, and then loses nothing more") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  client.sink->end(Clock::now());
  d.run();
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  LiveStream* stream = d.door->table().largest();
  REQUIRE(stream);
  d.answer(worker);                            // END
  CHECK(d.door->table().largest() == stream);  // the result waits
  const auto told = client.told();
  CHECK(d.door->table().largest() == nullptr);
  stream->evict(Clock::now());
  REQUIRE(told.size() == 3);
  CHECK_THAT(told[1], Catch::Contains(R"("seq":0)"));
  CHECK_THAT(told[2], Catch::Contains("closed"));
  CHECK(client.outbox.close()->code == 1000);
}

TEST_CASE("a client without a worker is told so, however short memory is") {
  DoorUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.sink->frames(some, Clock::now());
  LiveStream* stream = d.door->table().largest();
  REQUIRE(stream);
  stream->stream().dropped(ErrorCode::no_worker, Clock::now());
  CHECK(d.door->table().largest() == nullptr);
  stream->evict(Clock::now());
  CHECK_THAT(client.told().back(), Catch::Contains("no_worker"));
}

TEST_CASE("frames of a client that has ended make no stream large: its end needs them") {
  DoorUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.sink->frames(some, Clock::now());
  REQUIRE(d.door->table().largest());
  client.sink->end(Clock::now());
  CHECK(d.door->table().largest() == nullptr);
}
