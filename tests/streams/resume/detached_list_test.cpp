// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/detached_list.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using test::at;
using test::key_of;
using Entry = DetachedList::Entry;

TEST_CASE("the stream of the pipeline that has waited for the longest time is taken first") {
  DetachedList list;
  const Entry first{.pipeline = "b", .since = at(1), .key = key_of(9), .thread = 2};
  list.add({.pipeline = "b", .since = at(2), .key = key_of(1)}, true);
  list.add(first, true);
  list.add({.pipeline = "a", .since = at(0), .key = key_of(2)}, true);
  list.add({.pipeline = "c", .since = at(0), .key = key_of(3)}, true);
  CHECK(list.take_oldest("b") == first);
  CHECK(list.take_oldest("b")->key == key_of(1));
  CHECK_FALSE(list.take_oldest("b"));
  CHECK(list.take_oldest("a"));
  CHECK(list.take_oldest("c"));
}

TEST_CASE("a stream that was taken cannot be removed, and one that was removed is not taken") {
  DetachedList list;
  const Entry entry{.pipeline = "a", .since = at(1), .key = key_of(1)};
  list.add(entry, true);
  CHECK(list.take_oldest("a"));
  CHECK_FALSE(list.take_oldest());
  CHECK_FALSE(list.remove(entry));
  list.add(entry, true);
  CHECK(list.take_oldest() == entry);
  CHECK_FALSE(list.take_oldest("a"));
  CHECK_FALSE(list.remove(entry));
  list.add(entry, true);
  CHECK(list.remove(entry));
  CHECK_FALSE(list.take_oldest("a"));
  CHECK_FALSE(list.take_oldest());
}

TEST_CASE("of all pipelines the stream that has waited for the longest time is taken first") {
  DetachedList list;
  CHECK_FALSE(list.has_any());
  list.add({.pipeline = "a", .since = at(3), .key = key_of(1)}, true);
  list.add({.pipeline = "c", .since = at(1), .key = key_of(3)}, true);
  list.add({.pipeline = "b", .since = at(2), .key = key_of(2)}, true);
  CHECK(list.has_any());
  CHECK(list.take_oldest()->key == key_of(3));
  CHECK(list.take_oldest()->key == key_of(2));
  CHECK(list.take_oldest()->key == key_of(1));
  CHECK_FALSE(list.has_any());
}

TEST_CASE("a stream without a slot is taken only if a slot is not needed") {
  DetachedList list;
  const Entry early{.pipeline = "a", .since = at(1), .key = key_of(1)};
  const Entry late{.pipeline = "a", .since = at(2), .key = key_of(2)};
  list.add(early, true);
  list.add(late, false);
  CHECK(list.has_any("a"));
  CHECK_FALSE(list.has_any("b"));
  list.free_slot(early);
  CHECK_FALSE(list.has_any("a"));
  CHECK_FALSE(list.take_oldest("a"));
  CHECK(list.take_oldest() == early);
  CHECK(list.take_oldest() == late);
}

TEST_CASE("of several threads exactly one has each stream") {
  DetachedList list;
  constexpr int streams = 1000;
  for (int i = 0; i < streams; ++i)
    list.add({.pipeline = "a", .since = at(i), .key = key_of(1)}, true);
  int taken = 0, removed = 0;
  std::thread taker([&] {
    while (list.take_oldest("a")) ++taken;
  });
  for (int i = streams - 1; i >= 0; --i)
    if (list.remove({.pipeline = "a", .since = at(i), .key = key_of(1)})) ++removed;
  taker.join();
  CHECK(taken + removed == streams);
}
