// SPDX-License-Identifier: Apache-2.0
// Loaders on the host, and on each CUDA device of the machine or of the simulation.
#include <catch2/catch.hpp>
#include <deque>

#include "gpu/cuda/cuda.h"
#include "gpu/host/companion_layout.h"
#include "tests/gpu/cuda/consumer.h"
#include "tests/training/filling/random_loading.h"

using namespace millrace;
using namespace millrace::test;
using training::Loader;

namespace {

std::vector<std::string> all_devices() {
  std::vector<std::string> names{"host"};
  for (const cuda::FoundDevice& device : cuda::find_devices().devices) names.push_back(device.name);
  return names;
}

// Copies of a batch's arrays that are on their way from the device.
struct Fetch {
  LoadedBatch expected;
  std::vector<std::byte> tensor, slot, left, size, right, flags, reset, companions;
};

// Does not wait.
Fetch start_fetch(const WorkerBatch& batch, LoadedBatch expected, cuda::Fetcher& consumer) {
  Fetch fetch;
  fetch.expected = std::move(expected);
  const SlabLayout layout = layout_of(batch.slab().shape);
  const std::size_t entries = batch.rows() + batch.marks().size();
  const DeviceArrays* arrays = batch.device();
  const auto start = [&](std::vector<std::byte>& into, const void* from, std::size_t bytes) {
    into.resize(bytes);
    consumer.start(from, into);
  };
  start(fetch.tensor, arrays->tensor, fetch.expected.tensor.size());
  start(fetch.slot, arrays->slot, 4 * entries);
  start(fetch.left, arrays->left, 4 * entries);
  start(fetch.size, arrays->size, 4 * entries);
  start(fetch.right, arrays->right, 4 * entries);
  start(fetch.flags, arrays->flags, entries);
  start(fetch.reset, arrays->reset, entries);
  start(fetch.companions, arrays->companions, layout.bytes - layout.companions);
  return fetch;
}

void check(const Fetch& fetch, const training::Catalog& catalog, std::uint32_t body) {
  CHECK((fetch.tensor == fetch.expected.tensor));
  CHECK(values_of<std::int32_t>(fetch.slot) == fetch.expected.slot);
  CHECK(values_of<std::int32_t>(fetch.left) == fetch.expected.left);
  CHECK(values_of<std::int32_t>(fetch.size) == fetch.expected.size);
  CHECK(values_of<std::int32_t>(fetch.right) == fetch.expected.right);
  CHECK(values_of<std::uint8_t>(fetch.flags) == fetch.expected.flags);
  CHECK(values_of<std::uint8_t>(fetch.reset) == fetch.expected.reset);
  const CompanionLayout layout = layout_of(catalog.companions(), fetch.expected.rows, body);
  for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
    const Bytes found = Bytes(fetch.companions).subspan(layout.offsets[i], layout.sizes[i]);
    CHECK(std::ranges::equal(found, fetch.expected.companions[i]));
  }
}

// Loads an epoch on a device. Batches are given back while the copies of them wait on a stream.
void compare_with_host(const RandomLoading& loading, const std::string& device,
                       std::uint32_t threads) {
  auto on_host = loading.loader({.threads = 0});
  auto on_device = loading.loader({.threads = threads, .buffers = 3, .device = device});
  const auto consumer = consumer_on(device);
  std::deque<std::pair<Fetch, std::uint32_t>> fetches;
  while (auto expected = next_copy(on_host)) {
    auto batch = take(on_device);
    REQUIRE(batch.has_value());
    REQUIRE(batch->framed() == expected->framed);
    REQUIRE(batch->data().empty());
    on_device.use_on(*batch, consumer->stream());
    const std::uint32_t body = batch->body();
    fetches.emplace_back(start_fetch(*batch, std::move(*expected), *consumer), body);
    on_device.give_back(*batch);
  }
  CHECK_FALSE(take(on_device).has_value());
  consumer->wait();
  for (const auto& [fetch, body] : fetches) check(fetch, *loading.catalog, body);
}

}  // namespace

TEST_CASE("a loader on a device gives the batches of one on the host") {
  for (const std::string& device : all_devices()) {
    if (device == "host") continue;
    with_loadings(8, 5, [&](const RandomLoading& loading, std::mt19937_64& random) {
      compare_with_host(loading, device, static_cast<std::uint32_t>(random() % 3));
    });
  }
}

TEST_CASE("a batch on a device that is not used is dropped") {
  Eight eight;
  for (const std::string& device : all_devices()) {
    auto loader = eight.loader({.threads = 2, .prefetch = 3, .buffers = 3, .device = device});
    for (std::uint64_t step = 0; step < 5; ++step) {
      auto batch = take(loader);
      REQUIRE(batch.has_value());
      loader.give_back(*batch);
      loader.seek({0, step});
    }
    auto kept = take(loader);
    CHECK(kept->step() == 4);
    CHECK((kept->device() != nullptr) == (device != "host"));
    loader.give_back(*kept);
  }
}

TEST_CASE("an unknown device is an error of the first batch, and names those that exist") {
  Eight eight;
  auto loader = eight.loader({.device = "cuda:77"});
  CHECK(loader.ordinal() == 77);
  CHECK(loader.steps() > 0);
  CHECK_THROWS_AS(loader.next_until(soon()), DeviceFailure);
  CHECK_THROWS_WITH(
      loader.next_until(soon()),
      Catch::Matchers::StartsWith("no device \"cuda:77\" on this machine; available: host"));
}
