// SPDX-License-Identifier: Apache-2.0
#include "transport/net/turns.h"

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "transport/net/spawn.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

using Lines = std::vector<std::string>;

struct TurnsFixture {
  net::io_context context{1};
  Lines lines;

  Turns::Turn turn() { return Turns::Turn(context.get_executor()); }
  auto say(std::string line) {
    return [this, line] { lines.push_back(line); };
  }
};

Duration length(Turns::Turn& turn) {
  const Time begin{};
  turn.begin(begin);
  Duration length{};
  while (!turn.is_over(begin + length)) length += 1us;
  return length;
}

Task<> wait_for_turn(Executor executor, std::shared_ptr<int>) {
  Turns::Turn turn(executor);
  co_await turn.next();
}

}  // namespace

TEST_CASE_METHOD(TurnsFixture, "the turn of a readable connection is short, a further one longer") {
  auto one = turn();
  CHECK(length(one) == Turns::first);
  one.end();
  CHECK(length(one) == Turns::first);
  one.end_early([] {});
  context.run();
  CHECK(length(one) == Turns::further);
  one.end();
  CHECK(length(one) == Turns::first);
}

TEST_CASE_METHOD(TurnsFixture, "a turn begins once, with its first message") {
  auto one = turn();
  CHECK_FALSE(one.is_over(Time{} + 1h));
  one.begin(Time{});
  one.begin(Time{} + 1h);
  CHECK(one.is_over(Time{} + Turns::first));
}

TEST_CASE_METHOD(TurnsFixture, "between two further turns the thread does other work") {
  auto first = turn(), second = turn(), third = turn();
  const auto with_work = [this](std::string line) {
    return [this, line] {
      lines.push_back(line);
      net::post(context, say("work of others"));
    };
  };
  first.end_early(with_work("first"));
  second.end_early(with_work("second"));
  third.end_early(with_work("third"));
  context.run();
  CHECK(lines ==
        Lines{"first", "work of others", "second", "work of others", "third", "work of others"});
}

TEST_CASE_METHOD(TurnsFixture, "a connection that ends in its turn, or before, disturbs no other") {
  std::vector<std::unique_ptr<Turns::Turn>> turns;
  for (int i = 0; i < 3; ++i)
    turns.push_back(std::make_unique<Turns::Turn>(context.get_executor()));
  turns[0]->end_early([&] {
    lines.emplace_back("first");
    turns[0].reset();
    turns[1].reset();
  });
  turns[1]->end_early(say("second"));
  turns[2]->end_early(say("third"));
  context.run();
  CHECK(lines == Lines{"first", "third"});
}

TEST_CASE("a coroutine that waits for its turn is destroyed with its context") {
  const auto kept = std::make_shared<int>();
  {
    net::io_context context{1};
    spawn(context.get_executor(), wait_for_turn(context.get_executor(), kept));
    context.poll_one();
    CHECK(kept.use_count() == 2);
  }
  CHECK(kept.use_count() == 1);
}
