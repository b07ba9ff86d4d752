// SPDX-License-Identifier: Apache-2.0
// Errors of options by name, origins, and the warning of padding.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"
#include "training/plans/origin.h"
#include "training/plans/padding.h"
#include "training/plans/plan_checks.h"

namespace millrace::training {
namespace {

PlanOptions chunks(std::uint32_t size) {
  PlanOptions options;
  options.chunk.emplace();
  options.chunk->spec.size = size;
  return options;
}

PlanOptions stateful(std::uint32_t slots) {
  PlanOptions options = chunks(4);
  options.slots = slots;
  return options;
}

PlanOptions stateless(std::uint32_t rows) {
  PlanOptions options = chunks(4);
  options.mode = PlanMode::stateless;
  options.rows = rows;
  return options;
}

std::string message(const PlanOptions& options, Rank rank = {},
                    const std::vector<std::uint64_t>& lengths = {8, 8, 8, 8}) {
  const ListedCatalog catalog(lengths);
  const PlanError error = error_of(catalog, options, rank);
  CHECK(error.message.find(error.key) == 0);
  return error.message;
}

TEST_CASE("a plan needs streams, and enough for its slots") {
  CHECK(message(stateful(1), {}, {}) == "streams has no streams");
  CHECK(message(stateful(1), {}, {0, 0}) ==
        "streams has 2 streams, but none of them is long enough for a chunk");
  CHECK(message(stateful(5)) ==
        "slots = 5 is more than the 4 streams of an epoch: each slot needs a stream");
  PlanOptions half = stateful(3);
  half.frequencies = {0.5};
  CHECK(message(half) ==
        "slots = 3 is more than the 2 streams of an epoch: each slot needs a stream");
  PlanOptions whole;
  whole.mode = PlanMode::stateless;
  whole.rows = 2;
  CHECK(error_of(ListedCatalog({0}), whole).key == "streams");
}

TEST_CASE("the ranks must divide the slots") {
  CHECK(message(stateful(4), {0, 3}) ==
        "world = 3 does not divide slots, which is 4: each rank gets as many slots");
  CHECK(message(stateful(4), {2, 2}) == "rank = 2 must be less than world, which is 2");
  CHECK(message(stateful(4), {0, 0}) == "world = 0 must be at least 1");
}

TEST_CASE("a missing key is an error") {
  CHECK(message(stateful(0)).find("slots is missing") == 0);
  PlanOptions whole;
  whole.slots = 2;
  CHECK(message(whole).find("chunk is missing") == 0);
  CHECK(message(stateless(0)) ==
        "rows is missing: a batch needs one of the limits rows and max_padded_frames");
}

TEST_CASE("a key of another mode is an error") {
  const auto key = [](PlanOptions options, auto change) {
    change(options);
    return error_of(ListedCatalog({8, 8, 8}), options).key;
  };
  CHECK(key(stateful(2), [](auto& o) { o.rows = 2; }) == "rows");
  CHECK(key(stateful(2), [](auto& o) { o.max_padded_frames = 2; }) == "max_padded_frames");
  CHECK(key(stateful(2), [](auto& o) { o.max_waste = 0.5; }) == "max_waste");
  CHECK(key(stateful(2), [](auto& o) { o.shuffle_window = 2; }) == "shuffle_window");
  CHECK(key(stateful(2), [](auto& o) { o.buckets = {2}; }) == "buckets");
  CHECK(key(stateful(2), [](auto& o) { o.drop_last = false; }) == "drop_last");
  CHECK(key(stateless(2), [](auto& o) { o.slots = 2; }) == "slots");
  CHECK(key(stateless(2), [](auto& o) { o.packed_batch_size = 2; }) == "packed_batch_size");
  CHECK(key(stateless(2), [](auto& o) { o.max_pad_size = 2; }) == "max_pad_size");
  CHECK(key(stateless(2), [](auto& o) { o.buckets = {2, 2}; }) == "buckets");
  CHECK(key(stateless(2), [](auto& o) { o.max_waste = 1; }) == "max_waste");
  CHECK(key(stateless(2), [](auto& o) { o.max_waste = std::nan(""); }) == "max_waste");
  CHECK(key(stateless(2), [](auto& o) { o.frequencies = {1, 1}; }) == "streams");
  CHECK(key(stateless(2), [](auto& o) { o.frequencies = {-1}; }) == "streams");
  CHECK(key(stateless(2), [](auto& o) { o.width_buckets = {8, 4}; }) == "width_buckets");
  CHECK(key(stateless(2), [](auto& o) { o.width_buckets = {2, 3}; }) == "width_buckets");
}

TEST_CASE("RETURNN's modes refuse keys that RETURNN lacks") {
  PlanOptions options = stateless(2);
  options.mode = PlanMode::returnn_torch;
  options.max_pad_size = 3;
  CHECK(message(options) ==
        "max_pad_size = 3 cannot be set with mode = \"returnn-torch\": only mode = "
        "\"returnn-classic\" has this limit");
  options.max_pad_size = 0;
  options.chunk->spec.left = 1;
  CHECK(message(options) ==
        "chunk has the key left, which cannot be set with mode = \"returnn-torch\": the keys are "
        "size, step and min");
  options.chunk = ChunkRule{
      .spec = {.size = 4, .step = 2, .min = 1}, .align = Align::packed, .pad = Pad::repeat};
  CHECK(check_options(ListedCatalog({8, 8}), options, {}).has_value());
  options.chunk->spec.tail = Spec::Tail::drop;
  CHECK(message(options).starts_with("chunk has the key tail, "));
}

TEST_CASE("whole streams of changing lengths need a greatest width") {
  PlanOptions options;
  options.mode = PlanMode::stateless;
  options.rows = 2;
  options.frames = [](std::uint64_t epoch, std::uint64_t, std::uint32_t) { return 10 + epoch; };
  const ListedCatalog catalog({8, 8});
  CHECK(error_of(catalog, options).key == "width_buckets");
  options.width_buckets = {11};
  CHECK(all_batches(catalog, options, 1).size() == 1);
  CHECK_THROWS_AS(all_batches(catalog, options, 2), std::length_error);
}

TEST_CASE("equal inputs have equal origins, and each other input is named") {
  const ListedCatalog catalog({8, 8, 8}), other({8, 8, 9});
  const PlanOptions options = stateful(2);
  const std::string origin = origin_of(catalog, options);
  CHECK(origin == origin_of(catalog, stateful(2)));
  CHECK(difference_of(origin, origin).empty());
  const auto difference = [&](auto change) {
    PlanOptions changed = options;
    change(changed);
    return difference_of(origin, origin_of(catalog, changed));
  };
  CHECK(difference([](auto& o) { o.slots = 3; }) == "slots is 3 instead of 2");
  CHECK(difference([](auto& o) { o.seed = 7; }) == "seed is \"7\" instead of \"0\"");
  CHECK(difference([](auto& o) { o.shuffle = false; }) == "shuffle is false instead of true");
  CHECK(difference([](auto& o) { o.chunk->spec.left = 3; }).find("chunk is {") == 0);
  CHECK(difference([](auto& o) { o.width_buckets = {9}; }) == "width_buckets is [9] instead of []");
  CHECK(difference_of(origin, origin_of(other, options)).find("catalog is ") == 0);
  PlanOptions sorted = stateless(2), buckets = stateless(2);
  sorted.order = "sorted";
  buckets.bucket_count = 9;
  const std::string plain = origin_of(catalog, stateless(2));
  CHECK(difference_of(plain, origin_of(catalog, sorted)) ==
        "order is \"sorted\" instead of missing");
  CHECK(difference_of(plain, origin_of(catalog, buckets)) == "buckets is 9 instead of []");
  CHECK(difference_of(origin, origin_of(catalog, stateless(2))).find("mode is ") == 0);
  const ListedCatalog longer({8, 8, 8, 8});
  CHECK(difference_of(origin, origin_of(longer, options)) == "streams is 4 instead of 3");
  CHECK(difference_of(R"({"version":1})", origin) ==
        "the version is 2 instead of 1: another release of Millrace makes other batches of the "
        "same options");
  CHECK(difference_of(origin, "nonsense") == "it is not a JSON object");
}

// Calls of one to about ten minutes at 10 steps per second.
ListedCatalog calls(std::size_t count) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> length(std::log(1800.0), 0.6);
  std::vector<std::uint64_t> lengths(count);
  for (std::uint64_t& one : lengths) one = 4 * (1 + static_cast<std::uint64_t>(length(random)));
  return ListedCatalog(lengths);
}

TEST_CASE("the padding of 4000 calls on 320 slots is below 0.5 %") {
  const ListedCatalog catalog = calls(4000);
  const auto plan = plan_of(catalog, stateful(320));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    CHECK(padding_of(plan->epoch(epoch)->totals()) < 0.005);
  CHECK_FALSE(padding_warning(catalog, stateful(320), {}, plan->epoch(0)->totals()));
}

TEST_CASE("a warning of padding names a number of slots that suffices") {
  const ListedCatalog catalog = calls(500);
  const Rank rank{0, 4};
  const PlanOptions options = stateful(400);
  const PlanTotals totals = plan_of(catalog, options, rank)->epoch(0)->totals();
  CHECK(padding_of(totals) > 0.05);
  const auto warning = padding_warning(catalog, options, rank, totals);
  REQUIRE(warning);
  const std::string text = "slots = 400: slots = ";
  REQUIRE(warning->find(text) != std::string::npos);
  const auto slots =
      static_cast<std::uint32_t>(std::stoul(warning->substr(warning->find(text) + text.size())));
  CHECK(slots % 4 == 0);
  CHECK(padding_of(plan_of(catalog, stateful(slots))->epoch(0)->totals()) <= 0.05);
  CHECK(slots > 40);
}

TEST_CASE("if fewer slots do not help, the warning says so") {
  const ListedCatalog catalog({4000, 4, 4, 4});
  const Rank rank{0, 2};
  const auto totals = plan_of(catalog, stateful(4), rank)->epoch(0)->totals();
  const auto warning = padding_warning(catalog, stateful(4), rank, totals);
  REQUIRE(warning);
  CHECK(warning->find("fewer slots do not help") != std::string::npos);
}

}  // namespace
}  // namespace millrace::training
