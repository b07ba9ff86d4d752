// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "base/queue.h"
#include "gpu/batch_writer.h"
#include "tests/gpu/values.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Copies as they end, in this thread or another.
class Ended {
 public:
  Copied callback() {
    return [this](std::uint32_t slab, std::optional<Time> at) {
      (void)queue_.try_push({slab, at});
    };
  }

  // The slabs of the next `count` copies, each of which must have ended at or after `from`.
  std::multiset<std::uint32_t> next(int count, Time from) {
    std::multiset<std::uint32_t> slabs;
    for (; count > 0; --count) {
      const auto copy = queue_.pop_until(Clock::now() + patience);
      REQUIRE(copy);
      REQUIRE(copy->second);
      CHECK(*copy->second >= from);
      slabs.insert(copy->first);
    }
    return slabs;
  }

 private:
  Queue<std::pair<std::uint32_t, std::optional<Time>>> queue_{100};
};

// Every device passes these; a CUDA device joins the list where there is one.
std::unique_ptr<Device> device_under_test() {
  const std::string name = GENERATE(as<std::string>(), "host");
  return std::move(*open_device(name));
}

SlabShape write_batch(const SlabRing& ring, std::uint32_t slab, const RowFormat& format) {
  const auto frames = bytes_of<std::int16_t>({1, 2, 3, static_cast<std::int16_t>(slab)});
  BatchWriter writer(format, 4);
  writer.begin(ring.slab(slab), 2, 1, 6);
  writer.add({.slot = slab, .size = 4}, {Bytes(frames)});
  writer.add_mark({.slot = 1});
  return writer.finish();
}

}  // namespace

TEST_CASE("a device has the name by which it was opened") {
  const auto device = open_device("host");
  REQUIRE(device.has_value());
  CHECK((*device)->name() == "host");
}

TEST_CASE("an unknown device is refused with a sentence that names it") {
  const auto device = open_device("cuda:9");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().message == "unknown device \"cuda:9\"; allowed: host");
}

TEST_CASE("each copy is reported once, with its slab and a later instant") {
  const auto device = device_under_test();
  RowFormat format{.dtype = Element::f32};
  SlabRing ring(3, 4096);
  Ended ended;
  const auto slabs = device->attach(ring, format, ended.callback());
  format.dtype = device->slab_element(format);
  for (int round = 0; round < 5; ++round) {
    const Time before = Clock::now();
    for (std::uint32_t slab : {0, 1, 2}) slabs->copy(slab, write_batch(ring, slab, format));
    CHECK(ended.next(3, before) == std::multiset<std::uint32_t>{0, 1, 2});
  }
}

TEST_CASE("a copy leaves the slab as it was written") {
  const auto device = device_under_test();
  const RowFormat format;
  SlabRing ring(1, 4096);
  Ended ended;
  const auto slabs = device->attach(ring, format, ended.callback());
  const SlabShape shape = write_batch(ring, 0, format);
  const std::vector<std::byte> written(ring.slab(0).begin(), ring.slab(0).end());
  slabs->copy(0, shape);
  (void)ended.next(1, Time::min());
  CHECK(std::ranges::equal(ring.slab(0), written));
}

TEST_CASE("a device takes frames as they are or asks for the dtype") {
  const auto device = device_under_test();
  CHECK(device->slab_element({.frames = Element::f32, .dtype = Element::f32}) == Element::f32);
  const Element element = device->slab_element({.frames = Element::s16, .dtype = Element::f16});
  CHECK((element == Element::s16 || element == Element::f16));
}

TEST_CASE("lanes of one device are apart") {
  const auto device = device_under_test();
  const RowFormat format;
  SlabRing one(2, 4096), two(2, 4096);
  Ended of_one, of_two;
  const auto first = device->attach(one, format, of_one.callback());
  auto second = device->attach(two, format, of_two.callback());
  first->copy(0, write_batch(one, 0, format));
  second->copy(1, write_batch(two, 1, format));
  second.reset();
  first->copy(1, write_batch(one, 1, format));
  CHECK(of_one.next(2, Time::min()) == std::multiset<std::uint32_t>{0, 1});
  CHECK(of_two.next(1, Time::min()) == std::multiset<std::uint32_t>{1});
}
