// SPDX-License-Identifier: Apache-2.0
#include "transport/net/wakeup.h"

#include <catch2/catch.hpp>
#include <deque>
#include <stdexcept>
#include <string>

#include "transport/net/spawn.h"

using namespace millrace;

namespace {

struct WakeupFixture {
  Task<> wait(char name, int times) {
    for (; times > 0; --times) {
      co_await wakeups[static_cast<std::size_t>(name - 'a')].wait();
      ran += name;
    }
  }
  Task<> wait_in(std::size_t number) {
    co_await wakeups[number].wait();
    ran += '.';
  }
  Task<> fail(char name) {
    co_await wakeups[static_cast<std::size_t>(name - 'a')].wait();
    throw std::runtime_error("failed");
  }
  void begin(char name, int times) {
    wakeups.emplace_back(context.get_executor());
    spawn(context.get_executor(), wait(name, times));
  }
  void settle() {
    context.restart();
    context.poll();
  }

  net::io_context context{1};
  std::deque<Wakeup> wakeups;
  std::string ran;
};

}  // namespace

TEST_CASE_METHOD(WakeupFixture, "woken coroutines run later, in the order of their notifications") {
  begin('a', 1);
  begin('b', 1);
  begin('c', 1);
  settle();
  wakeups[2].notify();
  wakeups[0].notify();
  CHECK(ran.empty());
  context.restart();
  context.run_one();  // one for both
  CHECK(ran == "ca");
  wakeups[1].notify();
  settle();
  CHECK(ran == "cab");
}

TEST_CASE_METHOD(WakeupFixture, "several notifications count as one, also before the wait") {
  begin('a', 3);
  wakeups[0].notify();
  wakeups[0].notify();
  settle();
  CHECK(ran == "a");
  wakeups[0].notify();
  wakeups[0].notify();
  settle();
  CHECK(ran == "aa");
}

TEST_CASE_METHOD(WakeupFixture, "many woken coroutines let other work of the thread run between") {
  for (std::size_t i = 0; i <= WokenCoroutines::at_once; ++i) {
    wakeups.emplace_back(context.get_executor());
    spawn(context.get_executor(), wait_in(i));
  }
  settle();
  for (Wakeup& wakeup : wakeups) wakeup.notify();
  context.restart();
  context.run_one();
  CHECK(ran.size() == WokenCoroutines::at_once);
  settle();
  CHECK(ran.size() == WokenCoroutines::at_once + 1);
}

TEST_CASE_METHOD(WakeupFixture, "a woken coroutine that never runs is destroyed") {
  begin('a', 1);
  settle();
  wakeups[0].notify();
  CHECK(ran.empty());
}

TEST_CASE_METHOD(WakeupFixture, "if a woken coroutine throws, the others run the next time") {
  wakeups.emplace_back(context.get_executor());
  spawn(context.get_executor(), fail('a'));
  begin('b', 1);
  begin('c', 1);
  settle();
  for (Wakeup& wakeup : wakeups) wakeup.notify();
  CHECK_THROWS_AS(settle(), std::runtime_error);
  settle();
  CHECK(ran == "bc");
}
