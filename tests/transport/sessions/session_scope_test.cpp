// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session_scope.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/support/patience.h"
#include "transport/net/spawn.h"

using namespace millrace;

namespace {

struct Counted final : SessionScope::Watched {
  Counted(SessionScope& scope, int& all) : Watched(scope), all_(all) {}
  void check(Time) override { ++checks, ++all_; }
  void abort() override {}
  int checks = 0;

 private:
  int& all_;
};

struct ScopeFixture {
  ~ScopeFixture() {
    watched.clear();
    spawn(context.get_executor(), scope.join());
    context.restart();
    context.run();
  }
  void watch(int count) {
    for (int i = 0; i < count; ++i) watched.push_back(std::make_unique<Counted>(scope, checks));
  }
  // The most objects checked at once, until `done`.
  template <class Done>
  int most_at_once(Done done) {
    int most = 0, turns = 0;
    for (int before = checks; !done(); before = checks) {
      REQUIRE(++turns < 1000);
      REQUIRE(context.run_one_for(std::chrono::seconds(30)) == 1);
      most = std::max(most, checks - before);
    }
    return most;
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  SessionScope scope{context.get_executor(), limits, stats};
  int checks = 0;
  std::vector<std::unique_ptr<Counted>> watched;
};

}  // namespace

TEST_CASE_METHOD(ScopeFixture,
                 "many connections are checked in parts, each the same number of times") {
  watch(1000);
  scope.start();
  const int most = most_at_once([this] { return checks >= 2000; });
  CHECK(most <= 128);
  for (const auto& one : watched) CHECK(one->checks == 2);
}

TEST_CASE_METHOD(ScopeFixture,
                 "connections that open and close do not prevent the checks of others") {
  watch(300);
  scope.start();
  most_at_once([this] { return checks >= 128; });
  watched.erase(watched.begin(), watched.begin() + 100);
  watch(50);
  most_at_once([this] {
    return std::ranges::all_of(watched, [](const auto& one) { return one->checks > 0; });
  });
}

TEST_CASE_METHOD(ScopeFixture, "after a thread was busy, it catches up on the late parts") {
  watch(1000);
  scope.start();
  const Time limit = Clock::now() + patience;
  int at_once = 0;
  while (at_once < 3 * 128 && Clock::now() < limit) {
    net::post(context, [] {
      for (const Time end = Clock::now() + std::chrono::milliseconds(150); Clock::now() < end;) {
      }
    });
    const int before = checks;
    context.poll();
    at_once = checks - before;
  }
  CHECK(at_once >= 3 * 128);
}
