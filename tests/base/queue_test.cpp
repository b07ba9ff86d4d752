// SPDX-License-Identifier: Apache-2.0
#include "base/queue.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "tests/support/patience.h"

using millrace::Clock;
using millrace::patience;
using millrace::Queue;
using millrace::Time;
using Pushed = Queue<int>::Pushed;

TEST_CASE("many queued values need one wake-up") {
  Queue<int> queue(3);
  CHECK(queue.try_push(1) == Pushed::first);
  CHECK(queue.try_push(2) == Pushed::more);
  std::vector<int> values;
  queue.drain(values);
  CHECK(values == std::vector{1, 2});
  CHECK(queue.try_push(3) == Pushed::first);
}

TEST_CASE("a consumer that waits for several values sleeps until they are there, or it is woken") {
  Queue<int> queue(9);
  std::atomic<int> waited{0}, woken{0};
  std::jthread consumer([&] {
    for (std::vector<int> values; !queue.closed(); waited += static_cast<int>(values.size())) {
      queue.wait_for(3, Time::max());
      ++woken;
      queue.drain(values);
    }
  });
  const auto has = [&](int count) {
    for (const Time end = Clock::now() + patience; waited < count && Clock::now() < end;)
      std::this_thread::yield();
    return waited == count;
  };
  for (int i = 0; i < 3; ++i) (void)queue.try_push(1);
  CHECK(has(3));
  int two[] = {1, 2}, four[] = {1, 2, 3, 4};
  (void)queue.try_push(std::span(four));
  CHECK(has(7));
  (void)queue.try_push(std::span(two));
  queue.wake();
  CHECK(has(9));
  CHECK(woken == 3);  // once for each of the above
  queue.close();
}

TEST_CASE("the wait for several values has a deadline") {
  Queue<int> queue(9);
  (void)queue.try_push(1);
  queue.wait_for(2, Time::min());
  CHECK(queue.pop_until(Time::min()) == 1);
}

TEST_CASE("several values are queued together, or none of them") {
  Queue<int> queue(4);
  int three[] = {1, 2, 3};
  CHECK(queue.try_push(std::span(three)) == Pushed::first);
  CHECK(queue.try_push(std::span(three).first(2)) == Pushed::full);
  CHECK(queue.try_push(std::span(three).first(1)) == Pushed::more);
  std::vector<int> values;
  queue.drain(values);
  CHECK(values == std::vector{1, 2, 3, 1});
}

TEST_CASE("a full queue rejects a value and leaves it with the caller") {
  Queue<std::unique_ptr<int>> queue(1);
  (void)queue.try_push(std::make_unique<int>(1));
  auto second = std::make_unique<int>(2);
  CHECK(queue.try_push(std::move(second)) == Queue<std::unique_ptr<int>>::Pushed::full);
  REQUIRE(second);
  CHECK(*second == 2);
}

TEST_CASE("a closed queue returns the queued values and accepts no more") {
  Queue<int> queue(4);
  (void)queue.try_push(7);
  queue.close();
  CHECK(queue.try_push(8) == Pushed::closed);
  CHECK(queue.pop_until(millrace::Time::max()) == 7);
  CHECK(queue.pop_until(millrace::Time::max()) == std::nullopt);
}

TEST_CASE("popping and draining keep the order and the capacity") {
  Queue<int> queue(3);
  for (int value : {1, 2, 3}) (void)queue.try_push(std::move(value));
  CHECK(queue.pop_until(millrace::Time::max()) == 1);
  CHECK(queue.try_push(4) == Pushed::more);
  CHECK(queue.try_push(5) == Pushed::full);
  std::vector<int> values{9};
  queue.drain(values);
  CHECK(values == std::vector{2, 3, 4});
  CHECK(queue.try_push(6) == Pushed::first);
}

TEST_CASE("at its deadline a consumer gets a queued value, or stops waiting") {
  Queue<int> queue(2);
  const millrace::Time past{};
  CHECK(queue.pop_until(past) == std::nullopt);
  (void)queue.try_push(7);
  CHECK(queue.pop_until(past) == 7);
  CHECK(queue.pop_until(past) == std::nullopt);
}

TEST_CASE("closing a queue wakes a waiting consumer") {
  for (int round = 0; round < 100; ++round) {
    Queue<int> queue(1);
    std::atomic<bool> waits = false;
    std::optional<int> popped = 7;
    std::thread consumer([&] {
      waits = true;
      popped = queue.pop_until(millrace::Time::max());
    });
    while (!waits) std::this_thread::yield();
    queue.close();
    consumer.join();  // hangs, until the test's time limit, if it is not woken
    CHECK_FALSE(popped);
  }
}

TEST_CASE("a popped but never emptied queue does not grow") {
  Queue<int> queue(2);
  (void)queue.try_push(0);
  for (int i = 1; i < 100'000; ++i) {
    (void)queue.try_push(std::move(i));
    REQUIRE(queue.pop_until(millrace::Time::max()) == i - 1);
  }
  CHECK(queue.storage() < 16);
}

TEST_CASE("every value of every producer arrives once and in the producer's order") {
  Queue<int> queue(64);
  constexpr int producers = 3, each = 20'000;
  std::vector<std::jthread> threads;
  for (int producer = 0; producer < producers; ++producer)
    threads.emplace_back([&, producer] {
      for (int i = 0; i < each; ++i) {
        int value = producer * each + i;
        while (queue.try_push(std::move(value)) == Pushed::full) std::this_thread::yield();
      }
    });
  std::vector<int> next(producers, 0);
  for (int taken = 0; taken < producers * each; ++taken) {
    const int value = queue.pop_until(millrace::Time::max()).value();
    REQUIRE(value % each == next[static_cast<std::size_t>(value / each)]++);
  }
}
