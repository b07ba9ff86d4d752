// SPDX-License-Identifier: Apache-2.0
// Every vector of tests/conformance/returnn.json: what RETURNN itself computes.
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {
namespace {

namespace json = boost::json;

const json::object& vectors() {
  static const json::value all = [] {
    std::ifstream file(MILLRACE_CONFORMANCE "/returnn.json");
    return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  }();
  return all.as_object();
}

std::uint32_t number(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? 0 : value->to_number<std::uint32_t>();
}

PlanOptions options_for(std::string_view backend, const json::object& vector) {
  PlanOptions options;
  options.mode = backend == "classic" ? PlanMode::returnn_classic : PlanMode::returnn_torch;
  options.shuffle = false;
  if (const std::uint32_t size = number(vector, "size"); size > 0) {
    options.chunk.emplace();
    options.chunk->spec = {
        .size = size, .step = number(vector, "step"), .min = number(vector, "min")};
  }
  return options;
}

using Rows = std::vector<std::vector<std::uint64_t>>;

TEST_CASE("every vector of RETURNN's chunks is met", "[conformance]") {
  const json::array& cases = vectors().at("chunk").as_array();
  REQUIRE(cases.size() == 772);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    // The second stream has chunks in any case: a plan needs some.
    const std::uint64_t frames = one.at("len").to_number<std::uint64_t>();
    const ListedCatalog catalog({frames, 1000});
    for (const char* backend : {"classic", "torch"}) {
      PlanOptions options = options_for(backend, one.as_object());
      options.rows = 1;
      if (backend == std::string("torch") && options.chunk->spec.min > options.chunk->spec.size) {
        CHECK(one.at(backend).as_array().empty());
        CHECK(error_of(catalog, options).key == "streams");
        continue;
      }
      Rows rows;
      for (const PlannedBatch& batch : all_batches(catalog, options))
        for (const PlannedRow& row : batch.framed)
          if (row.stream == 0) rows.push_back({row.row.begin, row.row.end()});
      CHECK(rows == json::value_to<Rows>(one.at(backend)));
    }
  }
}

TEST_CASE("every vector of RETURNN's batches is met", "[conformance]") {
  const json::array& cases = vectors().at("batch").as_array();
  REQUIRE(cases.size() == 5);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    const ListedCatalog catalog(json::value_to<std::vector<std::uint64_t>>(one.at("lens")));
    const json::object& limits = one.at("opts").as_object();
    for (const char* backend : {"classic", "torch"}) {
      PlanOptions options = options_for(backend, one.as_object());
      options.rows = number(limits, "max_seqs");
      options.max_padded_frames = number(limits, "batch_size");
      options.packed_batch_size = number(limits, "packed_batch_size");
      std::vector<Rows> batches;
      for (const PlannedBatch& batch : all_batches(catalog, options)) {
        Rows& rows = batches.emplace_back();
        for (const PlannedRow& row : batch.framed)
          rows.push_back({row.stream, row.row.begin, row.row.end()});
      }
      CHECK(batches == json::value_to<std::vector<Rows>>(one.at(backend)));
    }
  }
}

TEST_CASE("RETURNN's limit of padding closes a batch in the classic backend") {
  const ListedCatalog catalog({10, 9, 2, 2, 2});
  PlanOptions options = options_for("classic", {});
  options.rows = 5;
  options.max_pad_size = 3;
  CHECK(batch_sizes(catalog, options) == std::vector<std::size_t>{2, 3});
  options.max_pad_size = 9;
  CHECK(batch_sizes(catalog, options) == std::vector<std::size_t>{3, 2});
}

TEST_CASE("each chunk of RETURNN's modes is a run of its own") {
  const ListedCatalog catalog({25, 7});
  PlanOptions options = options_for("classic", {{"size", 10}});
  options.rows = 4;
  for (const PlannedBatch& batch : all_batches(catalog, options))
    for (const PlannedRow& row : batch.framed) CHECK(row.row.is(flag::reset));
}

}  // namespace
}  // namespace millrace::training
