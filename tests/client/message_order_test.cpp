// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/message_order.h"

#include <catch2/catch.hpp>

#include "client/internal/resume/reconnects.h"

using namespace millrace;
using namespace std::chrono_literals;
using Verdict = MessageOrder::Verdict;

namespace {

constexpr Time start{1h};

}  // namespace

TEST_CASE("a message is delivered once, and a missing one is noticed") {
  MessageOrder order;
  CHECK(order.receive({.n = 0}) == Verdict::deliver);
  CHECK(order.receive({.n = 1}) == Verdict::deliver);
  CHECK(order.receive({.n = 1}) == Verdict::drop);
  CHECK(order.receive({.n = 0}) == Verdict::drop);
  CHECK(order.receive({.n = 3}) == Verdict::invalid);
  CHECK(order.next() == 2);
  CHECK(order.receive({.n = 2}) == Verdict::deliver);
}

TEST_CASE("the highest rows of results and of flushes are known") {
  MessageOrder order;
  CHECK(order.results() == 0);
  (void)order.receive({.n = 0, .result = 4});
  (void)order.receive({.n = 1, .flushed = 3});
  (void)order.receive({.n = 2, .result = 2});
  CHECK(order.results() == 5);
  CHECK(order.flushed() == 4);
}

TEST_CASE("if the stream was opened anew, results and flushes that came before are dropped") {
  MessageOrder order;
  (void)order.receive({.n = 0, .result = 4});
  (void)order.receive({.n = 1, .flushed = 4});
  order.resumed(true, start);
  CHECK(order.receive({.n = 2, .flushed = 4}) == Verdict::deliver);  // a second flush
  order.resumed(false, start);
  CHECK(order.receive({.n = 3, .result = 4}) == Verdict::drop);
  CHECK(order.receive({.n = 4, .flushed = 4}) == Verdict::drop);
  CHECK(order.receive({.n = 5}) == Verdict::deliver);
  CHECK(order.receive({.n = 6, .result = 5}) == Verdict::deliver);
  CHECK(order.receive({.n = 7, .flushed = 5}) == Verdict::deliver);
}

TEST_CASE("an acknowledgement is due a second after the last one if messages have come") {
  MessageOrder order;
  order.resumed(true, start);
  CHECK_FALSE(order.ack_due());
  (void)order.receive({.n = 0});
  CHECK(order.ack_due() == start + 1s);
  order.acked(start + 3s);
  CHECK_FALSE(order.ack_due());
  (void)order.receive({.n = 1});
  CHECK(order.ack_due() == start + 4s);
  order.resumed(true, start + 4s);  // the request had the number
  CHECK_FALSE(order.ack_due());
}

TEST_CASE("a lost connection is tried at once, then after doubled times with a jitter") {
  Reconnects reconnects(15s, 1);
  reconnects.lost(start, true);
  CHECK(reconnects.next(start) == start);
  for (const auto& delay : {100ms, 200ms, 400ms, 800ms, 1600ms}) {
    const Duration waits = *reconnects.next(start) - start;
    CHECK(waits >= delay * 3 / 4);
    CHECK(waits <= delay * 5 / 4);
  }
  CHECK(*reconnects.next(start) <= start + 2s);
  CHECK(*reconnects.next(start) >= start + 1500ms);
}

TEST_CASE("different streams do not retry at the same time") {
  Reconnects one(15s, 1), other(15s, 2);
  for (auto* reconnects : {&one, &other}) {
    reconnects->lost(start, true);
    for (int i = 0; i < 5; ++i) (void)reconnects->next(start);
  }
  CHECK(one.next(start) != other.next(start));
}

TEST_CASE("a service that asks for patience is tried later, and once more at the end") {
  Reconnects reconnects(15s, 1);
  reconnects.lost(start, true);
  CHECK(reconnects.next(start, 5s) == start + 5s);
  CHECK(reconnects.next(start + 5s, 20s) == start + 15s);
  CHECK_FALSE(reconnects.next(start + 15s));
}

TEST_CASE("a loss after something useful has a window of its own") {
  Reconnects reconnects(15s, 1);
  reconnects.lost(start, true);
  for (int i = 0; i < 4; ++i) (void)reconnects.next(start);
  reconnects.opened(start + 10s);
  reconnects.lost(start + 11s, true);
  CHECK(reconnects.limit() == start + 26s);
  CHECK(reconnects.next(start + 11s) == start + 11s);
}

TEST_CASE("connections that are lost without any use share a window") {
  Reconnects reconnects(15s, 1);
  reconnects.lost(start, true);
  for (const auto later : {1s, 6s, 12s}) {
    (void)reconnects.next(start + later);
    reconnects.opened(start + later);
    reconnects.lost(start + later + 1s, false);
  }
  CHECK(reconnects.limit() == start + 15s);
  reconnects.opened(start + 14s);
  reconnects.lost(start + 30s, false);  // it was idle for longer than the window
  CHECK(reconnects.limit() == start + 45s);
}
