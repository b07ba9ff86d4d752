// SPDX-License-Identifier: Apache-2.0
// Whole streams in the order of their lengths, and in buckets whose limits the plan chooses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {
namespace {

using Streams = std::vector<std::uint64_t>;

PlanOptions whole(PlanMode mode, const std::string& order) {
  PlanOptions options;
  options.mode = mode;
  options.rows = 1;
  options.order = order;
  return options;
}

// The streams of an epoch in the order of their rows.
Streams order_of(const Catalog& catalog, const PlanOptions& options, std::uint64_t epoch = 0) {
  Streams streams;
  for (const PlannedBatch& batch : all_batches(catalog, options, epoch))
    for (const PlannedRow& row : batch.framed)
      if (streams.empty() || streams.back() != row.stream) streams.push_back(row.stream);
  return streams;
}

std::vector<std::uint64_t> random_lengths(std::size_t count, std::uint64_t least,
                                          std::uint64_t most) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<std::uint64_t> length(least, most);
  std::vector<std::uint64_t> lengths(count);
  for (std::uint64_t& one : lengths) one = length(random);
  return lengths;
}

// RETURNN's own lines, with the permutation of the plan without an order.
Streams laplace(const Catalog& catalog, const Streams& shuffled, std::size_t bins) {
  Streams order;
  for (std::size_t i = 0; i < bins; ++i) {
    const auto at = [&](std::size_t bin) {
      return shuffled.begin() + static_cast<std::ptrdiff_t>(bin * shuffled.size() / bins);
    };
    Streams part(at(i), at(i + 1));
    std::ranges::stable_sort(part, {}, [&](std::uint64_t stream) {
      const auto length = static_cast<std::int64_t>(catalog.frames(stream));
      return i % 2 == 1 ? -length : length;
    });
    order.insert(order.end(), part.begin(), part.end());
  }
  return order;
}

TEST_CASE("laplace sorts each bin of the shuffled streams, up and down in turns") {
  const ListedCatalog catalog(random_lengths(103, 1, 30));
  const auto mode =
      GENERATE(PlanMode::stateless, PlanMode::returnn_classic, PlanMode::returnn_torch);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Streams shuffled = order_of(catalog, whole(mode, ""), epoch);
    const auto by = [&](const char* name) { return order_of(catalog, whole(mode, name), epoch); };
    CHECK(by("laplace") == laplace(catalog, shuffled, 2));
    CHECK(by("laplace:7") == laplace(catalog, shuffled, 7));
    CHECK(by("laplace:.20") == laplace(catalog, shuffled, 5));
    CHECK(by("laplace:.1000") == laplace(catalog, shuffled, 2));
    CHECK(by("laplace:500") == shuffled);
    CHECK(by("laplace:7") != laplace(catalog, order_of(catalog, whole(mode, ""), epoch + 1), 7));
  }
}

TEST_CASE("sorted streams of equal length keep the order of the catalog") {
  const ListedCatalog catalog({5, 3, 5, 0, 9, 3});
  CHECK(order_of(catalog, whole(PlanMode::stateless, "sorted")) == Streams{1, 5, 0, 2, 4});
  CHECK(order_of(catalog, whole(PlanMode::returnn_torch, "sorted_reverse")) ==
        Streams{4, 0, 2, 1, 5});
}

TEST_CASE("the chunks of a stream stay together in an order of RETURNN's modes") {
  PlanOptions options = whole(PlanMode::returnn_torch, "sorted");
  options.chunk.emplace();
  options.chunk->spec = {.size = 2, .step = 2};
  CHECK(order_of(ListedCatalog({5, 3, 9}), options) == Streams{1, 0, 2});
}

TEST_CASE("without shuffling, the bins of laplace are those of the catalog") {
  PlanOptions options = whole(PlanMode::stateless, "laplace:2");
  options.shuffle = false;
  CHECK(order_of(ListedCatalog({5, 3, 9, 1, 2, 7}), options) == Streams{1, 0, 2, 5, 4, 3});
}

TEST_CASE("an order counts the lengths of the epoch") {
  PlanOptions options = whole(PlanMode::stateless, "sorted");
  options.width_buckets = {10};
  options.frames = [](std::uint64_t epoch, std::uint64_t stream, std::uint32_t) {
    return epoch == 0 ? 1 + stream : 4 - stream;
  };
  CHECK(order_of(ListedCatalog({8, 8, 8}), options, 0) == Streams{0, 1, 2});
  CHECK(order_of(ListedCatalog({8, 8, 8}), options, 1) == Streams{2, 1, 0});
}

TEST_CASE("with an order, each batch is left out in some epoch") {
  const ListedCatalog catalog({1, 2, 3, 4, 5});
  const auto plan = plan_of(catalog, whole(PlanMode::stateless, "sorted"), {0, 2});
  std::set<std::uint64_t> left_out{0, 1, 2, 3, 4};
  for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
    std::set<std::uint64_t> streams{0, 1, 2, 3, 4};
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      for (const PlannedBatch& batch : batches_of(*plan->epoch(epoch), {.rank = {rank, 2}}))
        streams.erase(batch.framed.front().stream);
    REQUIRE(streams.size() == 1);
    left_out.erase(*streams.begin());
  }
  CHECK(left_out.empty());
}

// The padding of a plan, and its number of batches.
struct Padding {
  double share = 0;
  std::size_t batches = 0;
};

Padding padding_by(const Catalog& catalog, const PlanOptions& options) {
  const std::vector<PlannedBatch> batches = all_batches(catalog, options);
  double frames = 0, columns = 0;
  for (const PlannedBatch& batch : batches) {
    columns += static_cast<double>(batch.rows) * batch.width;
    for (const PlannedRow& row : batch.framed) frames += row.row.size;
  }
  return {1 - frames / columns, batches.size()};
}

TEST_CASE("laplace and 40 buckets have less than 3 % padding in equally many batches") {
  const ListedCatalog catalog(random_lengths(2000, 100, 1999));
  PlanOptions options = whole(PlanMode::stateless, "laplace:.1000");
  options.rows = 64;
  options.max_padded_frames = 20'000;
  const Padding ordered = padding_by(catalog, options);
  CHECK(ordered.share < 0.025);
  options.order.clear();
  options.bucket_count = 40;
  const Padding buckets = padding_by(catalog, options);
  CHECK(buckets.share < 0.03);
  CHECK(static_cast<double>(buckets.batches) < 1.03 * static_cast<double>(ordered.batches));
  options.bucket_count = 0;
  CHECK(padding_by(catalog, options).share > 0.4);
}

TEST_CASE("chosen buckets have whole batches, except for the widest one") {
  const ListedCatalog catalog(random_lengths(500, 10, 200));
  PlanOptions options = whole(PlanMode::stateless, "");
  options.rows = 16;
  options.bucket_count = 7;
  std::size_t small = 0;
  for (const std::size_t size : batch_sizes(catalog, options)) small += size < 16 ? 1 : 0;
  CHECK(small <= 1);
}

TEST_CASE("streams of equal length are in one of the chosen buckets") {
  std::vector<std::uint64_t> lengths(100, 7);
  PlanOptions options = whole(PlanMode::stateless, "");
  options.rows = 10;
  options.bucket_count = 5;
  CHECK(batch_sizes(ListedCatalog(lengths), options) == std::vector<std::size_t>(10, 10));
  lengths.resize(115, 9);
  lengths.resize(116, 30);
  std::multiset<std::uint32_t> widths;
  for (const PlannedBatch& batch : all_batches(ListedCatalog(lengths), options))
    widths.insert(batch.width);
  CHECK(widths.count(7) == 10);
  CHECK(widths.count(9) == 2);
  CHECK(widths.count(30) == 1);
}

TEST_CASE("an order or a number of buckets that cannot be used is an error") {
  const ListedCatalog catalog({8, 8, 8});
  const auto message = [&](const PlanOptions& options) {
    return error_of(catalog, options).message;
  };
  for (const char* order : {"random", "laplace:", "laplace:0", "laplace:.0", "laplace:2:3",
                            "laplace:.", "laplace:-1", "sorted:2"})
    CHECK(message(whole(PlanMode::stateless, order)) ==
          "order = \"" + std::string(order) +
              "\" must be sorted, sorted_reverse, laplace, laplace:BINS or laplace:.STREAMS, as in "
              "\"laplace:.1000\"");
  PlanOptions options = whole(PlanMode::stateless, "sorted");
  options.bucket_count = 2;
  CHECK(message(options) ==
        "order = \"sorted\" cannot be set beside buckets: both group streams by length");
  options.bucket_count = 0;
  options.chunk.emplace();
  options.chunk->spec = {.size = 2, .step = 2};
  CHECK(message(options) ==
        "order = \"sorted\" cannot be set beside chunk: whole streams have an order by length");
  options.order.clear();
  options.bucket_count = 2;
  CHECK(message(options) == "buckets = 2 cannot be set beside chunk: chunks need a list of limits");
  options = whole(PlanMode::stateful, "laplace");
  options.rows = 0;
  CHECK(message(options) ==
        "order = \"laplace\" cannot be set with mode = \"stateful\": the streams of all slots are "
        "read at the same time");
}

}  // namespace
}  // namespace millrace::training
