// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/read_plan.h"
#include "training/plans/order/epoch_streams.h"

namespace millrace::training {
namespace {

PlanOptions options_with(std::vector<double> frequencies, bool shuffle = true) {
  PlanOptions options;
  options.frequencies = std::move(frequencies);
  options.shuffle = shuffle;
  return options;
}

ListedCatalog parts_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> parts{0};
  for (const std::uint64_t size : sizes) parts.push_back(parts.back() + size);
  ListedCatalog catalog(std::vector<std::uint64_t>(parts.back(), 10));
  catalog.set_parts(parts);
  return catalog;
}

std::vector<std::uint64_t> streams_of(const Catalog& catalog, const PlanOptions& options,
                                      std::uint64_t epoch) {
  const EpochStreams streams(catalog, options, epoch);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < streams.size(); ++i) numbers.push_back(streams.stream(i));
  return numbers;
}

TEST_CASE("a catalog with the frequency 1 comes once per epoch") {
  const ListedCatalog catalog = parts_of({5, 3});
  CHECK(streams_of(catalog, {}, 4) == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(streams_of(catalog, options_with({1, 0}), 4) == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a quarter of a catalog per epoch gives each stream once in four epochs") {
  const ListedCatalog catalog = parts_of({10, 8});
  const PlanOptions options = options_with({1, 0.25});
  std::vector<std::uint64_t> first;
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::multiset<std::uint64_t> seen;
    std::vector<std::uint64_t> order;
    for (std::uint64_t epoch = 4 * round; epoch < 4 * round + 4; ++epoch) {
      const auto streams = streams_of(catalog, options, epoch);
      REQUIRE(streams.size() == 12);
      for (std::size_t i = 0; i < 10; ++i) CHECK(streams[i] == i);
      seen.insert(streams.begin() + 10, streams.end());
      order.insert(order.end(), streams.begin() + 10, streams.end());
    }
    CHECK(seen == std::multiset<std::uint64_t>{10, 11, 12, 13, 14, 15, 16, 17});
    CHECK(order != first);  // each round is another permutation
    first = order;
  }
}

TEST_CASE("a frequency that gives no whole number is exact over epochs") {
  const ListedCatalog catalog = parts_of({10});
  for (const double frequency : {0.29, 0.1, 1.5, 2.33, 0.333333333}) {
    std::map<std::uint64_t, std::uint64_t> counts;
    std::uint64_t all = 0;
    for (std::uint64_t epoch = 0; epoch < 100; ++epoch)
      for (const std::uint64_t stream : streams_of(catalog, options_with({frequency}), epoch)) {
        ++counts[stream];
        ++all;
      }
    const auto expected = static_cast<std::uint64_t>(1000 * frequency + 1e-6);
    CHECK(all == expected);
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      CHECK(counts[stream] >= all / 10);
      CHECK(counts[stream] <= all / 10 + 1);
    }
  }
}

TEST_CASE("a frequency above 1 gives streams several times in an epoch") {
  const ListedCatalog catalog = parts_of({4});
  std::multiset<std::uint64_t> seen;
  for (const std::uint64_t stream : streams_of(catalog, options_with({2.5}), 0))
    seen.insert(stream);
  CHECK(seen.size() == 10);
  for (std::uint64_t stream = 0; stream < 4; ++stream) {
    CHECK(seen.count(stream) >= 2);
    CHECK(seen.count(stream) <= 3);
  }
}

TEST_CASE("the copies of a stream in an epoch are numbered from 0") {
  const ListedCatalog catalog = parts_of({3, 7});
  for (const double frequency : {0.75, 1.5, 2.0, 3.3})
    for (const std::uint64_t window : {0u, 3u})
      for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        PlanOptions options = options_with({1, frequency});
        options.shuffle_window = window;
        const EpochStreams streams(catalog, options, epoch);
        std::map<std::uint64_t, std::uint32_t> copies;
        for (std::uint64_t i = 0; i < streams.size(); ++i)
          REQUIRE(streams.copy(i) == copies[streams.stream(i)]++);
      }
}

TEST_CASE("without shuffling the next streams are in the order of the catalog") {
  const ListedCatalog catalog = parts_of({5});
  CHECK(streams_of(catalog, options_with({0.5}, false), 0) == std::vector<std::uint64_t>{0, 1});
  CHECK(streams_of(catalog, options_with({0.5}, false), 1) == std::vector<std::uint64_t>{2, 3, 4});
  CHECK(streams_of(catalog, options_with({0.5}, false), 3) == std::vector<std::uint64_t>{2, 3, 4});
}

TEST_CASE("an epoch to which a frequency gives no stream says so") {
  const ListedCatalog catalog = parts_of({3});
  PlanOptions options = options_with({0.3});
  options.mode = PlanMode::stateless;
  options.rows = 1;
  CHECK_THROWS_WITH(plan_of(catalog, options)->epoch(0), "epoch 0 has no step: it has no streams");
}

TEST_CASE("plans give each copy of a stream that its epoch has") {
  const ListedCatalog catalog = parts_of({6, 4});
  for (const PlanMode mode : {PlanMode::stateful, PlanMode::stateless, PlanMode::returnn_classic}) {
    PlanOptions options = options_with({1, 2.5});
    options.mode = mode;
    options.chunk.emplace();
    options.chunk->spec.size = 4;
    (mode == PlanMode::stateful ? options.slots : options.rows) = 3;
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      std::map<std::pair<std::uint64_t, std::uint32_t>, int> rows, expected;
      for (const PlannedBatch& batch : all_batches(catalog, options, epoch))
        for (const PlannedRow& row : batch.framed) ++rows[{row.stream, row.copy}];
      const EpochStreams streams(catalog, options, epoch);
      for (std::uint64_t i = 0; i < streams.size(); ++i)
        expected[{streams.stream(i), streams.copy(i)}] = 3;
      CHECK(rows == expected);
    }
  }
}

}  // namespace
}  // namespace millrace::training
