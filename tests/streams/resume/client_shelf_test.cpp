// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/client_shelf.h"

#include <catch2/catch.hpp>
#include <new>
#include <random>

#include "tests/streams/live_stream.h"
#include "tests/support/allocations.h"

using namespace millrace;
using test::Said;
using Shelf = ClientShelf;

namespace {

void add_result(Shelf& shelf, std::uint64_t seq, std::string text = {}) {
  shelf.add(Shelf::Result{.head = {.seq = seq}, .point = {.seq = seq + 1}},
            {Answer::Kind::text, std::move(text)});
}

void add_message(Shelf& shelf, std::string text) {
  shelf.add(Shelf::Message{}, {Answer::Kind::text, std::move(text)});
}

void give_from(Shelf& shelf, std::uint64_t n, ClientOutput& client) {
  for (shelf.seek(n); !shelf.has_given_all();) shelf.give_next(client);
}

}  // namespace

TEST_CASE("the shelf gives its messages in order with their numbers") {
  Shelf shelf(7);
  add_result(shelf, 0, "a");
  add_message(shelf, "b");
  shelf.add(Shelf::Flushed{.mark = 3, .seq = 0});
  shelf.add(Shelf::Rejected{.code = ErrorCode::values, .frames = 2}, {.data = "bad"});
  shelf.add(Shelf::Error{.code = ErrorCode::internal}, {.data = "broken"});
  shelf.add(Shelf::Closed{.frames = 100, .chunks = 2});
  CHECK(shelf.first() == 7);
  CHECK(shelf.next() == 13);

  test::CapturedClient client;
  while (!shelf.has_given_all()) shelf.give_next(client);
  CHECK(client.said == Said{"result 0 a", "message 0 at 0 b", "flushed 3", "rejected values 2",
                            "error internal", "closed 100 2"});
  REQUIRE(client.numbers.size() == 6);
  CHECK(client.numbers[0] == MessageNumber{.n = 7, .point = ResumePoint{.seq = 1}});
  CHECK(client.numbers[1] == MessageNumber{.n = 8});
  CHECK(client.numbers[5].n == 12);
}

TEST_CASE("the shelf gives messages from a number on and the last one with its own values") {
  Shelf shelf(0);
  for (std::uint64_t seq = 0; seq < 3; ++seq) add_result(shelf, seq);
  test::CapturedClient client;
  give_from(shelf, 3, client);
  CHECK(client.said.empty());
  give_from(shelf, 1, client);
  CHECK(client.said == Said{"result 1 ", "result 2 "});
  shelf.give_last(Shelf::Result{.head = {.seq = 2}, .point = {.seq = 3}}, {.data = "own"}, client);
  CHECK(client.said.back() == "result 2 own");
  CHECK(client.numbers.back() == MessageNumber{.n = 2, .point = ResumePoint{.seq = 3}});
}

TEST_CASE("a kept message has all values of the first one") {
  class Client final : public test::CapturedClient {
   public:
    void result(const ResultHead& head, const Answer& answer) override {
      CHECK(head.begin == 100);
      CHECK(head.end == 300);
      CHECK(head.rate == 8000);
      CHECK(head.flags == 17);
      CHECK(answer == Answer{Answer::Kind::bytes, std::string("a\0b", 3), true});
      REQUIRE((head.explanation != nullptr) == (head.seq == 1));
      if (!head.explanation) return;
      CHECK(head.explanation->in_batch.batch == BatchId{812});
      CHECK(head.explanation->at.done == Time(std::chrono::seconds(7)));
    }
    void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override {
      CHECK(message == "bad");
      CapturedClient::rejected(code, message, frames);
    }
    void error(ErrorCode code, std::string_view message) override {
      CHECK(message == "broken");
      CapturedClient::error(code, message);
    }
    void closed(std::uint64_t, std::uint64_t, bool drained) override { CHECK(drained); }
  };
  Shelf shelf(0);
  {
    const Answer answer{Answer::Kind::bytes, std::string("a\0b", 3), true};
    Explanation explanation{.in_batch = {.batch = BatchId{812}}, .at = {}};
    explanation.at.done = Time(std::chrono::seconds(7));
    ResultHead head{.seq = 0, .begin = 100, .end = 300, .rate = 8000, .flags = 17};
    shelf.add(Shelf::Result{head, {}}, answer);
    head.seq = 1;
    head.explanation = &explanation;
    shelf.add(Shelf::Result{head, {}}, answer);
  }
  shelf.add(Shelf::Rejected{.code = ErrorCode::values}, {.data = "bad"});
  shelf.add(Shelf::Error{.code = ErrorCode::internal}, {.data = "broken"});
  shelf.add(Shelf::Closed{.drained = true});
  Client client;
  give_from(shelf, 0, client);
  CHECK(client.numbers.size() == 5);
  CHECK(client.said == Said{"rejected values 0", "error internal"});
}

TEST_CASE("messages of any length are given in order while others are acknowledged") {
  std::minstd_rand random(1);
  const auto draw = [&](std::uint64_t n) { return random() % n; };
  const auto text_of = [](std::uint64_t n) {
    return std::string(n % 50 == 0 ? 5000 : n * n % 300, static_cast<char>('a' + n % 26));
  };
  Shelf shelf(3);
  for (int step = 0; step < 2000; ++step) {
    for (std::uint64_t more = draw(20); more > 0; --more) add_message(shelf, text_of(shelf.next()));
    shelf.acknowledge(shelf.first() + draw(shelf.next() - shelf.first() + 1));
    test::CapturedClient client;
    if (draw(3) == 0) shelf.seek(shelf.first() + draw(shelf.next() - shelf.first() + 1));
    const std::uint64_t from = shelf.given();
    for (std::uint64_t more = draw(shelf.next() - from + 1); more > 0; --more)
      shelf.give_next(client);
    Said expected;
    std::size_t bytes = 0;
    for (std::uint64_t n = from; n < shelf.given(); ++n)
      expected.push_back("message 0 at 0 " + text_of(n));
    for (std::uint64_t n = shelf.first(); n < shelf.next(); ++n)
      bytes += Shelf::overhead + text_of(n).size();
    REQUIRE((client.said == expected));  // not printed
    REQUIRE(shelf.bytes() >= bytes);
    if (!client.numbers.empty()) REQUIRE(client.numbers.front().n == from);
  }
}

TEST_CASE("a shelf that keeps messages of a second takes 2 KiB and allocates nothing further") {
  Shelf shelf(0);
  const std::size_t before = test::allocated_bytes();
  const auto second = [&] {
    const std::size_t kept = shelf.next();
    for (std::uint64_t seq = 0; seq < 10; ++seq)
      add_result(shelf, seq, "about ten words, they say");
    CHECK(test::allocated_bytes() <= before + 2048 + 256);
    shelf.acknowledge(kept + 10);
  };
  second();
  const std::size_t allocations = test::allocations();
  second();
  CHECK(test::allocations() == allocations + 10);  // the texts of this test
}

TEST_CASE("a shelf takes little more memory than it has bytes, and frees what is acknowledged") {
  Shelf shelf(0);
  const std::size_t before = test::allocated_bytes();
  for (std::uint64_t seq = 0; seq < 10000; ++seq) add_result(shelf, seq, "text");
  CHECK(test::allocated_bytes() - before < shelf.bytes() * 9 / 8);
  shelf.acknowledge(9000);
  CHECK(test::allocated_bytes() - before < shelf.bytes() * 9 / 8 + (1 << 16));
  shelf.acknowledge(shelf.next());
  CHECK(test::allocated_bytes() - before < 4096);
}

TEST_CASE("a message for which there is no memory is not on the shelf") {
  Shelf shelf(0);
  add_result(shelf, 0, "kept");
  const Answer answer{Answer::Kind::text, std::string(4000, 'a')};
  {
    const test::FailingAllocation fails(1);
    CHECK_THROWS_AS(shelf.add(Shelf::Result{{}, {}}, answer), std::bad_alloc);
  }
  CHECK(shelf.next() == 1);
  CHECK(shelf.bytes() < 2048);
  test::CapturedClient client;
  give_from(shelf, 0, client);
  CHECK(client.said == Said{"result 0 kept"});
}

TEST_CASE("the shelf keeps a message until it is acknowledged") {
  Shelf shelf(5);
  for (std::uint64_t seq = 0; seq < 3; ++seq) add_result(shelf, seq);
  shelf.acknowledge(7);
  CHECK(shelf.first() == 7);
  CHECK(shelf.next() == 8);
  test::CapturedClient client;
  shelf.give_next(client);
  CHECK(client.said == Said{"result 2 "});
  shelf.acknowledge(8);
  CHECK(shelf.empty());
  CHECK(shelf.next() == 8);
}

TEST_CASE("an old acknowledgement has no effect") {
  Shelf shelf(5);
  add_result(shelf, 0);
  shelf.acknowledge(2);
  CHECK(shelf.first() == 5);
  CHECK_FALSE(shelf.empty());
}

TEST_CASE("the bytes of a shelf are the memory of its messages whatever their lengths") {
  for (const std::size_t length : {0, 900, 1100, 1900, 5000}) {
    Shelf shelf(0);
    CHECK(shelf.bytes() == 0);
    const std::size_t before = test::allocated_bytes();
    for (std::uint64_t seq = 0; seq < 1000; ++seq) add_result(shelf, seq, std::string(length, 'a'));
    CHECK(shelf.bytes() >= 1000 * (Shelf::overhead + length));
    CHECK(test::allocated_bytes() - before < shelf.bytes() * 9 / 8);
    shelf.acknowledge(900);
    CHECK(shelf.bytes() >= 100 * (Shelf::overhead + length));
    CHECK(shelf.bytes() <= 101 * (2 * Shelf::overhead + 2048 + length));
    shelf.acknowledge(shelf.next());
    CHECK(shelf.bytes() == 0);
  }
}

TEST_CASE("results and messages of workers count as results") {
  Shelf shelf(0);
  add_result(shelf, 0);
  shelf.add(Shelf::Flushed{});
  add_message(shelf, "a");
  CHECK(shelf.results() == 2);
  shelf.acknowledge(2);
  CHECK(shelf.results() == 1);
  shelf.acknowledge(shelf.next());
  CHECK(shelf.results() == 0);
}
