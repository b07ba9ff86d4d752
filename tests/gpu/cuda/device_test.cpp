// SPDX-License-Identifier: Apache-2.0
// Tests of all devices: the host, and each CUDA device of the machine or of the simulation.
#include "gpu/host/device.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "gpu/cuda/devices.h"
#include "tests/gpu/cuda/consumer.h"
#include "tests/gpu/host/batches.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;

namespace {

std::vector<std::string> all_devices() {
  std::vector<std::string> names{"host"};
  for (const cuda::FoundDevice& device : cuda::find_devices().devices) names.push_back(device.name);
  if (names.size() == 1) std::cout << "the host alone: " << cuda::find_devices().why_none << "\n";
  return names;
}

// A ring on a device, with its reader and a model's stream. Throws on failure instead of using
// Catch's assertions, because a test may have several in different threads.
class Lane {
 public:
  Lane(const std::string& name, const RowFormat& tensor, std::uint32_t slabs = 3,
       std::size_t bytes = 65536)
      : tensor_(tensor),
        devices_({.use = DeviceRule::Use::automatic}),
        device_(std::move(*devices_.open(name))),
        ring_(slabs, bytes),
        slabs_(device_->attach(
            ring_, [this](DeviceReport report) { (void)reports_.try_push(std::move(report)); })),
        reader_(slabs_->reader(tensor)),
        consumer(consumer_on(name)) {}

  // Writes the batch into the slab and starts its copy.
  SlabShape write(std::uint32_t slab, const RandomBatch& batch) {
    const SlabShape shape = batch.write(device_->slab_format(tensor_), ring_.slab(slab));
    copying = slabs_->copy(slab, shape);
    if (copying == Copying::failed) throw std::runtime_error("a copy failed");
    return shape;
  }
  DeviceArrays take(std::uint32_t slab, const SlabShape& shape) {
    const DeviceArrays arrays = reader_->take(slab, shape, ring_.slab(slab));
    reader_->use_on(slab, consumer->stream());
    return arrays;
  }
  // True if tensor and control arrays are those that the host writes for the batch.
  bool holds(const DeviceArrays& at, const SlabShape& shape, const RandomBatch& batch) {
    std::vector<std::byte, Aligned> wanted(
        layout_of({shape.rows, shape.marks, shape.width, tensor_.values, tensor_.dtype}).bytes);
    const SlabShape as = batch.write(tensor_, wanted);
    const SlabLayout layout = layout_of(as);
    const std::size_t tensor = std::size_t{as.rows} * as.width * as.values * size_of(as.element);
    const std::size_t entries = as.rows + as.marks;
    const auto same = [&](const void* from, std::size_t begin, std::size_t bytes) {
      const auto got = fetch(*consumer, from, bytes);
      return std::ranges::equal(got, MutableBytes(wanted).subspan(begin, bytes));
    };
    return same(at.tensor, 0, tensor) && same(at.slot, layout.slots, 4 * entries) &&
           same(at.left, layout.left, 4 * entries) && same(at.size, layout.size, 4 * entries) &&
           same(at.right, layout.right, 4 * entries) && same(at.flags, layout.flags, entries) &&
           same(at.reset, layout.reset, entries);
  }
  // Gives the slab back, and waits until it may be written again.
  void give_back(std::uint32_t slab) {
    reader_->give_back(slab);
    if (copying == Copying::under_way) wait_for<CopyEnded>(slab);
    if (!slabs_->give_back(slab)) wait_for<SlabFreed>(slab);
  }
  // Waits for a report of this slab. Keeps other reports for later calls.
  template <class Report>
  Report wait_for(std::uint32_t slab) {
    const auto is_it = [slab](const DeviceReport& report) {
      const auto* wanted = std::get_if<Report>(&report);
      return wanted && wanted->slab == slab;
    };
    auto found = std::ranges::find_if(seen_, is_it);
    while (found == seen_.end()) {
      seen_.push_back(reports_.pop_until(Clock::now() + patience).value());
      found = is_it(seen_.back()) ? seen_.end() - 1 : seen_.end();
    }
    const Report report = std::get<Report>(*found);
    seen_.erase(found);
    return report;
  }

 private:
  template <class T>
  struct AlignedTo {
    using value_type = T;
    T* allocate(std::size_t n) {
      return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{slab_alignment}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{slab_alignment}); }
    bool operator==(const AlignedTo&) const = default;
  };
  using Aligned = AlignedTo<std::byte>;

  const RowFormat tensor_;
  Queue<DeviceReport> reports_{1000};
  std::vector<DeviceReport> seen_;
  Devices devices_;
  std::unique_ptr<Device> device_;
  SlabRing ring_;
  std::unique_ptr<DeviceSlabs> slabs_;
  std::unique_ptr<DeviceReader> reader_;

 public:
  std::unique_ptr<cuda::Fetcher> consumer;
  Copying copying{};
  DeviceSlabs& slabs() { return *slabs_; }
  DeviceReader& reader() { return *reader_; }
  const SlabRing& ring() const { return ring_; }
};

constexpr RowFormat samples{.dtype = Element::f32, .context = 3};

}  // namespace

TEST_CASE("a device has the name with which it was opened") {
  const std::string name = GENERATE(from_range(all_devices()));
  Devices devices({.use = DeviceRule::Use::automatic});
  CHECK((*devices.open(name))->name() == name);
}

TEST_CASE("a slab of a device holds unconverted frames, and one of the host the tensor") {
  const std::string name = GENERATE(from_range(all_devices()));
  Devices devices({.use = DeviceRule::Use::automatic});
  const auto device = std::move(*devices.open(name));
  const RowFormat same{.frames = Element::f32, .dtype = Element::f32};
  CHECK(device->slab_format(same).dtype == Element::f32);
  CHECK_FALSE(device->slab_format(same).bare);
  const RowFormat slab = device->slab_format({.frames = Element::s16, .dtype = Element::f16});
  CHECK(slab.dtype == (name == "host" ? Element::f16 : Element::s16));
  CHECK(slab.bare == (name != "host"));
}

TEST_CASE("a batch becomes the same tensor on every device") {
  const std::string name = GENERATE(from_range(all_devices()));
  const auto [frames, dtype] = GENERATE(table<Element, Element>({{Element::s16, Element::s16},
                                                                 {Element::s16, Element::f32},
                                                                 {Element::s16, Element::f16},
                                                                 {Element::f32, Element::f32},
                                                                 {Element::f32, Element::f16},
                                                                 {Element::f16, Element::f32}}));
  const std::uint32_t values = GENERATE(1u, 2u, 7u);
  const bool repeat = GENERATE(false, true);
  const RowFormat format{
      .frames = frames, .dtype = dtype, .values = values, .context = 3, .repeat = repeat};
  Lane lane(name, format);
  for (unsigned seed = 0; seed < 6; ++seed) {
    const RandomBatch batch(format, seed, 5 + 16 * seed, seed);
    const std::uint32_t slab = seed % 3;
    std::ranges::fill(lane.ring().slab(slab), std::byte{0x77});
    const SlabShape shape = lane.write(slab, batch);
    CHECK(lane.holds(lane.take(slab, shape), shape, batch));
    lane.give_back(slab);
  }
}

TEST_CASE("renew_flags() sends flags that changed on the host after the copy to the device") {
  const std::string name = GENERATE(from_range(all_devices()));
  Lane lane(name, samples);
  const SlabShape shape = lane.write(0, RandomBatch(samples, 1, 5, 1));
  if (lane.copying == Copying::under_way) (void)lane.wait_for<CopyEnded>(0);
  const MutableBytes slab = lane.ring().slab(0);
  const DeviceArrays arrays = lane.reader().take(0, shape, slab);
  const SlabLayout layout = layout_of(shape);
  const MutableBytes flags = slab.subspan(layout.flags, shape.rows);
  const MutableBytes resets = slab.subspan(layout.reset, shape.rows);
  std::ranges::fill(flags, std::byte{2});
  std::ranges::fill(resets, std::byte{1});
  lane.reader().renew_flags(arrays, 0, shape, slab);
  lane.reader().use_on(0, lane.consumer->stream());
  CHECK(std::ranges::equal(fetch(*lane.consumer, arrays.flags, shape.rows), flags));
  CHECK(std::ranges::equal(fetch(*lane.consumer, arrays.reset, shape.rows), resets));
  lane.reader().give_back(0);
}

TEST_CASE("each copy is reported once, with its bytes and the time of its end") {
  const std::string name = GENERATE(from_range(all_devices()));
  Lane lane(name, samples);
  for (int round = 0; round < 5; ++round)
    for (std::uint32_t slab : {0u, 1u, 2u}) {
      const Time before = Clock::now();
      const SlabShape shape = lane.write(slab, RandomBatch(samples, 4, 8, slab));
      if (lane.copying == Copying::there) continue;
      const auto ended = lane.wait_for<CopyEnded>(slab);
      CHECK(ended.at >= before);
      CHECK(ended.bytes == layout_of(shape).bytes);
      CHECK(lane.slabs().give_back(slab));
    }
}

TEST_CASE("a copy does not change the slab") {
  const std::string name = GENERATE(from_range(all_devices()));
  Lane lane(name, samples);
  const SlabShape shape = lane.write(0, RandomBatch(samples, 4, 8, 1));
  const std::vector<std::byte> written(lane.ring().slab(0).begin(), lane.ring().slab(0).end());
  (void)lane.take(0, shape);
  lane.give_back(0);
  CHECK(std::ranges::equal(lane.ring().slab(0), written));
}

TEST_CASE("a batch in a slab stays unchanged while the other slabs are written and read") {
  const std::string name = GENERATE(from_range(all_devices()));
  Lane lane(name, samples);
  std::vector<RandomBatch> batches;
  std::vector<SlabShape> shapes(3);
  std::vector<DeviceArrays> arrays(3);
  for (std::uint32_t i = 0; i < 60; ++i) {
    const std::uint32_t slab = i % 3;
    if (i >= 3) {
      CHECK(lane.holds(arrays[slab], shapes[slab], batches[i - 3]));
      lane.give_back(slab);
    }
    batches.emplace_back(samples, 5, 40, i);
    shapes[slab] = lane.write(slab, batches.back());
    arrays[slab] = lane.take(slab, shapes[slab]);
  }
}

TEST_CASE("a batch is read on any number of streams") {
  const std::string name = GENERATE(from_range(all_devices()));
  Lane lane(name, samples);
  auto other = consumer_on(name);
  for (unsigned i = 0; i < 20; ++i) {
    const RandomBatch batch(samples, 4, 20, i);
    const SlabShape shape = lane.write(0, batch);
    const DeviceArrays arrays = lane.take(0, shape);
    lane.reader().use_on(0, other->stream());
    lane.reader().use_on(0, other->stream());
    std::swap(lane.consumer, other);
    CHECK(lane.holds(arrays, shape, batch));
    lane.give_back(0);
  }
}

TEST_CASE("lanes of one device do not disturb each other") {
  const std::string name = GENERATE(from_range(all_devices()));
  std::vector<std::jthread> threads;
  std::atomic<int> held = 0;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      Lane lane(name, samples);
      for (unsigned i = 0; i < 30; ++i) {
        const RandomBatch batch(samples, 3, 30, 100 * thread + i);
        const SlabShape shape = lane.write(i % 3, batch);
        if (lane.holds(lane.take(i % 3, shape), shape, batch)) ++held;
        lane.give_back(i % 3);
      }
    });
  threads.clear();
  CHECK(held == 4 * 30);
}

TEST_CASE("slabs can be destroyed while copies are under way") {
  const std::string name = GENERATE(from_range(all_devices()));
  for (int round = 0; round < 10; ++round) {
    Lane lane(name, samples);
    for (std::uint32_t slab : {0u, 1u, 2u})
      (void)lane.write(slab, RandomBatch(samples, 4, 20, slab));
  }
  Lane after(name, samples);
  const RandomBatch batch(samples, 4, 20, 1);
  const SlabShape shape = after.write(0, batch);
  CHECK(after.holds(after.take(0, shape), shape, batch));
}
