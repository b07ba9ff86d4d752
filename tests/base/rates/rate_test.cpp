// SPDX-License-Identifier: Apache-2.0
#include "base/rates/rate.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <thread>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr Time start{1h};

int taken(Rate& rate, const RateRule& rule, Time now, int tries) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += rate.try_take(rule, now);
  return count;
}

// A token bucket in exact arithmetic, written in another way: it keeps its tokens, and their
// fractions as nanoseconds, and not the time at which it is full.
class Bucket {
 public:
  Bucket(std::int64_t interval, std::int64_t burst)
      : interval_(interval), burst_(burst), tokens_(burst) {}

  bool try_take(std::int64_t now, std::int64_t cost) {
    __int128 saved = static_cast<__int128>(tokens_) * interval_ + fraction_ + (now - last_);
    last_ = now;
    saved = std::min(saved, static_cast<__int128>(burst_) * interval_);
    tokens_ = static_cast<std::int64_t>(saved / interval_);
    fraction_ = static_cast<std::int64_t>(saved % interval_);
    if (tokens_ < cost) return false;
    tokens_ -= cost;
    return true;
  }

 private:
  const std::int64_t interval_;  // ns per token
  const std::int64_t burst_;
  std::int64_t tokens_;
  std::int64_t fraction_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace

TEST_CASE("a burst is taken at once, then one unit per interval") {
  Rate rate;
  const RateRule rule(20, 40);
  CHECK(taken(rate, rule, start, 100) == 40);
  CHECK(taken(rate, rule, start + 49ms, 100) == 0);
  CHECK(taken(rate, rule, start + 50ms, 100) == 1);
  CHECK(taken(rate, rule, start + 1s, 100) == 19);
  CHECK(taken(rate, rule, start + 1h, 100) == 40);
}

TEST_CASE("a rate without a limit accepts everything") {
  Rate rate;
  CHECK(taken(rate, {}, start, 1000) == 1000);
  CHECK(rate.wait({}, start) == 0s);
  CHECK_FALSE(RateRule().limits());
}

TEST_CASE("the wait ends when the next unit is there, and not before") {
  Rate rate;
  const RateRule rule(3, 1);
  CHECK(rate.wait(rule, start) == 0s);
  CHECK(rate.try_take(rule, start));
  const Duration wait = rate.wait(rule, start);
  CHECK(wait == 333'333'334ns);
  CHECK_FALSE(rate.try_take(rule, start + wait - 1ns));
  CHECK(rate.try_take(rule, start + wait));
}

TEST_CASE("a refused take costs nothing") {
  Rate rate;
  const RateRule rule(1, 2);
  CHECK(rate.try_take(rule, start, 2));
  for (int i = 0; i < 10; ++i) CHECK_FALSE(rate.try_take(rule, start + 1s, 2));
  CHECK(rate.try_take(rule, start + 2s, 2));
}

TEST_CASE("a cost above the burst is taken only by take, and the rate recovers from it") {
  Rate rate;
  const RateRule rule(2, 10);
  CHECK_FALSE(rate.try_take(rule, start, 11));
  rate.take(rule, start, 30);
  CHECK(rate.wait(rule, start, 0) == 10s);
  CHECK(rate.is_exceeded(rule, start + 10s - 1ns));
  CHECK_FALSE(rate.is_exceeded(rule, start + 10s));
  CHECK_FALSE(rate.try_take(rule, start + 10s));
  CHECK(rate.try_take(rule, start + 10500ms));
}

TEST_CASE("a clock that is behind takes nothing twice, and makes no rate stricter for later") {
  Rate rate;
  const RateRule rule(1000, 2);
  CHECK(rate.try_take(rule, start));
  CHECK(rate.try_take(rule, start));
  CHECK_FALSE(rate.try_take(rule, start - 5us));
  CHECK(rate.wait(rule, start - 5us) == 1005us);
  CHECK(rate.try_take(rule, start + 1ms));
}

TEST_CASE("a rule may change between two takes") {
  Rate rate;
  CHECK(taken(rate, RateRule(10, 5), start, 10) == 5);
  CHECK(taken(rate, RateRule(10, 8), start, 10) == 3);
  CHECK(taken(rate, RateRule(10, 1), start, 10) == 0);
}

TEST_CASE("extreme rules and costs do not overflow") {
  const Time late{Duration(std::int64_t{1} << 60)};  // after 36 years
  const double huge = std::numeric_limits<double>::max();
  for (const double per_second : {1e-300, 1e-9, 1.0, 1e9, huge})
    for (const double burst : {1e-300, 1.0, 1e9, huge}) {
      CAPTURE(per_second, burst);
      Rate rate;
      const RateRule rule(per_second, burst);
      (void)rate.try_take(rule, late, huge);
      rate.take(rule, late, huge);
      rate.take(rule, late, huge);
      CHECK(rate.wait(rule, late, 0) >= 0s);
      CHECK_FALSE(rate.try_take(rule, late - 1ns, huge));
    }
}

TEST_CASE("a rate decides as a token bucket in exact arithmetic") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::minstd_rand random(seed + 1);
    const std::int64_t per_second = 1 + static_cast<std::int64_t>(random() % 5000);
    const std::int64_t burst = 1 + static_cast<std::int64_t>(random() % 50);
    const std::int64_t interval = (1'000'000'000 + per_second - 1) / per_second;
    Rate rate;
    const RateRule rule(static_cast<double>(per_second), static_cast<double>(burst));
    std::int64_t now = 1'000'000'000;
    Bucket bucket(interval, burst);
    bool same = true;
    for (int i = 0; i < 2000; ++i) {
      now += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(3 * interval));
      const std::int64_t cost = static_cast<std::int64_t>(random() % 4);
      same &= rate.try_take(rule, from_wire(now), static_cast<double>(cost)) ==
              bucket.try_take(now, cost);
    }
    CHECK(same);
  }
}

TEST_CASE("threads together take no more than the rule allows") {
  Rate rate;
  const RateRule rule(1e6, 1000);
  std::atomic<int> count = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        int own = 0;
        // The clocks of the threads differ by up to 3 us; all end within 1 ms.
        for (int i = 0; i < 20'000; ++i)
          own += rate.try_take(rule, start + i * 50ns + thread * 1us);
        count += own;
      });
  }
  CHECK(count >= 1999);
  CHECK(count <= 2003);
}
