// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/client_shelf.h"

#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::Said;
using Shelf = ClientShelf;

namespace {

Shelf::Result result(std::uint64_t seq, std::string text = {}) {
  return {.head = {.seq = seq},
          .answer = {Answer::Kind::text, std::move(text)},
          .point = {.seq = seq + 1}};
}

Shelf::Message message(std::string text) {
  return {.head = {}, .message = {Answer::Kind::text, std::move(text)}};
}

}  // namespace

TEST_CASE("the shelf gives its messages in order with their numbers") {
  Shelf shelf(7);
  shelf.add(result(0, "a"));
  shelf.add(message("b"));
  shelf.add(Shelf::Flushed{.mark = 3, .seq = 0});
  shelf.add(Shelf::Rejected{.code = ErrorCode::values, .message = "bad", .frames = 2});
  shelf.add(Shelf::Error{.code = ErrorCode::internal, .message = "broken"});
  shelf.add(Shelf::Closed{.frames = 100, .chunks = 2});
  CHECK(shelf.first() == 7);
  CHECK(shelf.next() == 13);

  test::CapturedClient client;
  for (std::uint64_t n = 7; n < 13; ++n) shelf.give(n, client);
  CHECK(client.said == Said{"result 0 a", "message 0 at 0 b", "flushed 3", "rejected values 2",
                            "error internal", "closed 100 2"});
  REQUIRE(client.numbers.size() == 6);
  CHECK(client.numbers[0] == MessageNumber{.n = 7, .point = ResumePoint{.seq = 1}});
  CHECK(client.numbers[1] == MessageNumber{.n = 8});
  CHECK(client.numbers[5].n == 12);
}

TEST_CASE("the shelf keeps a message until it is acknowledged") {
  Shelf shelf(5);
  for (std::uint64_t seq = 0; seq < 3; ++seq) shelf.add(result(seq));
  shelf.acknowledge(7);
  CHECK(shelf.first() == 7);
  CHECK(shelf.next() == 8);
  test::CapturedClient client;
  shelf.give(7, client);
  CHECK(client.said == Said{"result 2 "});
  shelf.acknowledge(8);
  CHECK(shelf.empty());
  CHECK(shelf.next() == 8);
}

TEST_CASE("an old acknowledgement has no effect") {
  Shelf shelf(5);
  shelf.add(result(0));
  shelf.acknowledge(2);
  CHECK(shelf.first() == 5);
  CHECK_FALSE(shelf.empty());
}

TEST_CASE("the bytes of a shelf are those of its messages and their data") {
  Shelf shelf(0);
  CHECK(shelf.bytes() == 0);
  const std::size_t each = sizeof(Shelf::Kept);
  shelf.add(result(0, std::string(100, 'a')));
  CHECK(shelf.bytes() == each + 100);
  shelf.add(message(std::string(10, 'b')));
  shelf.add(Shelf::Rejected{.code = ErrorCode::values, .message = "bad", .frames = 0});
  shelf.add(Shelf::Flushed{});
  CHECK(shelf.bytes() == 4 * each + 113);
  shelf.acknowledge(1);
  CHECK(shelf.bytes() == 3 * each + 13);
  shelf.clear();
  CHECK(shelf.bytes() == 0);
  CHECK(shelf.next() == 4);
}

TEST_CASE("results and messages of workers count as results") {
  Shelf shelf(0);
  shelf.add(result(0));
  shelf.add(Shelf::Flushed{});
  shelf.add(message("a"));
  CHECK(shelf.results() == 2);
  shelf.acknowledge(2);
  CHECK(shelf.results() == 1);
  shelf.clear();
  CHECK(shelf.results() == 0);
}
