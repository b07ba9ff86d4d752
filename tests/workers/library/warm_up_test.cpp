// SPDX-License-Identifier: Apache-2.0
#include "workers/library/warm_up.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;

namespace {

// Rows of 2 columns of context, bodies of 3 or 6 frames, and 1 of look-ahead.
Welcome pipeline_of_two_widths() {
  Welcome pipeline = FakeService().welcome;
  pipeline.slabs = 0;
  pipeline.chunk = R"({"size":3,"left":2,"right":1})";
  pipeline.context = 2;
  pipeline.width = 9;
  pipeline.width_buckets = {6, 9};
  pipeline.row_buckets = {2, 4};
  return pipeline;
}

std::vector<BatchSize> sizes_of(std::vector<std::uint32_t> rows, std::uint32_t most) {
  Welcome pipeline = pipeline_of_two_widths();
  pipeline.row_buckets = std::move(rows);
  pipeline.rows = most;
  return warm_up_sizes(pipeline);
}

}  // namespace

TEST_CASE("a model warms up with each width and each number of rows, the largest first") {
  CHECK(sizes_of({2, 4}, 4) == std::vector<BatchSize>{{4, 9}, {2, 9}, {4, 6}, {2, 6}});
  CHECK(sizes_of({}, 4) == std::vector<BatchSize>{{4, 9}, {1, 9}, {4, 6}, {1, 6}});
  CHECK(sizes_of({}, 1) == std::vector<BatchSize>{{1, 9}, {1, 6}});
}

TEST_CASE("a width that no row fits into is left out") {
  Welcome pipeline = pipeline_of_two_widths();
  pipeline.width_buckets = {2, 9};
  CHECK(warm_up_sizes(pipeline) == std::vector<BatchSize>{{4, 9}, {2, 9}});
}

TEST_CASE("the batches of a warm-up are of zeros, and each row is a stream of its own") {
  WarmUp warm_up(pipeline_of_two_widths());
  std::vector<BatchSize> seen;
  while (auto batch = warm_up.next()) {
    seen.push_back({batch->rows(), batch->width()});
    CHECK(batch->data().size() == std::size_t{2} * batch->rows() * batch->width());
    CHECK(std::ranges::all_of(batch->data(), [](std::byte each) { return each == std::byte{0}; }));
    CHECK(batch->framed().size() == batch->rows());
    CHECK(batch->opened().size() == batch->rows());
    for (std::uint32_t row = 0; row < batch->rows(); ++row) {
      CHECK(batch->slot()[row] == static_cast<int>(row));
      CHECK(batch->flags()[row] ==
            (flag::start | flag::reset | flag::segment | flag::last | flag::end));
      CHECK(batch->reset()[row] == 1);
      CHECK(batch->left()[row] == 0);
      CHECK(batch->size()[row] == static_cast<int>(batch->width()) - 3);
      CHECK(batch->right()[row] == 1);
      CHECK(batch->opened()[row].stream == batch->framed()[row].stream);
    }
    std::ranges::fill(batch->data(), std::byte{7});  // the model works in place
    warm_up.done(*batch);
  }
  CHECK(seen == warm_up_sizes(warm_up.pipeline()));
}

TEST_CASE("with more rows than slots, rows of a warm-up share slots") {
  Welcome pipeline = pipeline_of_two_widths();
  pipeline.slots = 3;
  WarmUp warm_up(pipeline);
  const auto batch = warm_up.next();
  REQUIRE(batch);
  CHECK(std::vector<int>(batch->slot().begin(), batch->slot().end()) == std::vector{0, 1, 2, 0});
}

TEST_CASE("a rule with keys that this library does not know does not prevent the warm-up") {
  Welcome pipeline = pipeline_of_two_widths();
  pipeline.chunk = R"({"size":3,"left":2,"right":1,"hop":"dynamic"})";
  WarmUp warm_up(pipeline);
  const auto batch = warm_up.next();
  REQUIRE(batch);
  CHECK(batch->size()[0] == 7);
}

TEST_CASE("a warm-up on a device that does not exist is an error of the device") {
  try {
    WarmUp(pipeline_of_two_widths(), "cuda:77");
    FAIL("nothing was thrown");
  } catch (const WorkerError& error) {
    CHECK(error.code() == "device");
  }
}
