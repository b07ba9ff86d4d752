// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_schedule.h"

#include <catch2/catch.hpp>
#include <new>
#include <vector>

#include "tests/support/allocations.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

using Peers = std::vector<int>;

struct Scheduled {
  ZeromqSchedule schedule;
  Time now{1h};

  static ZeromqPeer peer(int number) { return ZeromqPeer{static_cast<std::uint64_t>(number)}; }
  static int number(ZeromqPeer peer) { return static_cast<int>(peer); }

  void heard(int from, int times = 1) {
    for (int i = 0; i < times; ++i) schedule.heard(peer(from));
  }
  // Those that are offered room. They `want` more again.
  Peers offered(bool want = false) {
    Peers peers;
    schedule.offer_room(now, [&](ZeromqPeer one) {
      peers.push_back(number(one));
      if (want) schedule.full(one);
    });
    return peers;
  }
  // Those that are tried, all of them with this outcome.
  Peers tried(bool unreachable) {
    Peers peers;
    schedule.find_unreachable([&](ZeromqPeer one) {
      peers.push_back(number(one));
      return unreachable;
    });
    return peers;
  }
  Peers forgotten(const ZeromqSchedule::Turn& turn) {
    Peers peers;
    schedule.forget_unreachable(turn, [&](ZeromqPeer one) { peers.push_back(number(one)); });
    return peers;
  }
};

}  // namespace

TEST_CASE_METHOD(Scheduled, "who had no room is offered it once, whatever it answers") {
  schedule.full(peer(1));
  schedule.full(peer(2));
  CHECK(schedule.is_unsettled());
  CHECK(offered() == Peers{1, 2});
  CHECK_FALSE(schedule.is_unsettled());
  now += 1h;
  CHECK(offered().empty());
}

TEST_CASE_METHOD(Scheduled, "room is not offered at every turn") {
  schedule.full(peer(1));
  CHECK(offered(true) == Peers{1});
  CHECK(offered(true).empty());
  now += ZeromqSchedule::second_look;
  CHECK(offered(true) == Peers{1});
}

TEST_CASE_METHOD(Scheduled, "whose connection has ended is tried until nothing reaches it") {
  schedule.ended(peer(1));
  CHECK(tried(false) == Peers{1});
  CHECK(schedule.is_unsettled());
  CHECK(tried(true) == Peers{1});
  CHECK_FALSE(schedule.is_unsettled());
  CHECK(tried(true).empty());
}

TEST_CASE_METHOD(Scheduled, "who there is no memory to note as unreachable is tried again") {
  schedule.ended(peer(1));
  bool thrown = false;
  try {
    const test::Scarcity scarcity(1);
    schedule.find_unreachable([](ZeromqPeer) { return true; });
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(schedule.is_unsettled());
  CHECK(tried(true) == Peers{1});
  CHECK(forgotten({.all = true, .round = 5}) == Peers{1});
}

TEST_CASE_METHOD(Scheduled, "the unreachable are forgotten when all that had come was received") {
  schedule.ended(peer(1));
  schedule.ended(peer(2));
  CHECK(tried(true) == Peers{1, 2});
  CHECK(forgotten({.all = false, .round = 5}).empty());
  CHECK(forgotten({.all = true, .round = 5}) == Peers{1, 2});
  CHECK(forgotten({.all = true, .round = 5}).empty());
}

TEST_CASE_METHOD(Scheduled,
                 "while others have no end, the unreachable have as many turns as they") {
  heard(2, 100);
  schedule.ended(peer(1));
  (void)tried(true);
  CHECK(forgotten({.all = false, .round = 5}).empty());
  heard(2, 3);
  heard(1);
  heard(2, 5);
  CHECK(forgotten({.all = false, .round = 5}).empty());
  heard(2);
  CHECK(forgotten({.all = false, .round = 5}) == Peers{1});
}

TEST_CASE_METHOD(Scheduled, "connections are swept when it is time and whoever spoke was heard") {
  const ZeromqSchedule::Turn busy{.all = false, .round = 2}, idle{.all = true, .round = 2};
  CHECK(schedule.sweeps(now, idle));
  CHECK_FALSE(schedule.sweeps(now + ZeromqSchedule::sweep - 1ms, idle));
  now += ZeromqSchedule::sweep;
  heard(1, 2);
  CHECK_FALSE(schedule.sweeps(now, busy));
  heard(1);
  CHECK(schedule.sweeps(now, busy));
}

TEST_CASE_METHOD(Scheduled, "the timer is set again only for what is sooner") {
  CHECK(schedule.alarm(now, false) == now + ZeromqSchedule::sweep);
  CHECK_FALSE(schedule.alarm(now, false));
  CHECK(schedule.alarm(now, true) == now + ZeromqSchedule::second_look);
  CHECK_FALSE(schedule.alarm(now, true));
  CHECK_FALSE(schedule.alarm(now, false));
  schedule.went_off();
  CHECK(schedule.alarm(now, false) == now + ZeromqSchedule::sweep);
}
