// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "batcher/stats.h"

using namespace millrace;

namespace {

BatchRow batch_row(std::uint32_t left, std::uint32_t size, std::uint32_t right) {
  BatchRow row{};
  row.ready.row.left = left;
  row.ready.row.size = size;
  row.ready.row.right = right;
  return row;
}

}  // namespace

TEST_CASE("padding is the part of the tensor that no window fills") {
  Batch batch;
  batch.trigger = Trigger::deadline;
  batch.rows = 4;
  batch.width = 10;
  batch.framed = {batch_row(0, 6, 2), batch_row(2, 6, 0), batch_row(2, 3, 0)};
  batch.marks = {batch_row(0, 0, 0)};
  BatchStats stats;
  stats.count(batch, 8);
  CHECK(stats.batches[Trigger::deadline].value() == 1);
  CHECK(stats.rows.value() == 3);
  CHECK(stats.offered.value() == 8);
  CHECK(stats.marks.value() == 1);
  CHECK(stats.frames.value() == 40);
  CHECK(stats.frames_padded.value() == 19);
  CHECK(stats.rows_frames_padded.value() == 9);
  CHECK(stats.rows_per_batch.sum() == 3);
}

TEST_CASE("a batch with only marker rows has no offered rows") {
  Batch batch;
  batch.trigger = Trigger::full;
  batch.marks = {batch_row(0, 0, 0), batch_row(0, 0, 0)};
  BatchStats stats;
  stats.count(batch, 8);
  CHECK(stats.batches[Trigger::full].value() == 1);
  CHECK(stats.marks.value() == 2);
  CHECK(stats.offered.value() == 0);
  CHECK(stats.frames.value() == 0);
}
