// SPDX-License-Identifier: Apache-2.0
// The widths of batches whose rows differ in width.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "batcher/stats.h"
#include "chunker/chunker.h"
#include "tests/batcher/lane_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A row that is ready at t0. With size 0 it is a marker row.
ReadyRow ready_row(std::uint32_t left, std::uint32_t size, std::uint32_t right) {
  ReadyRow row;
  row.row.left = left;
  row.row.size = size;
  row.row.right = right;
  row.ready = t0;
  return row;
}

// The width of the batch of these rows. Windows have a context of 4 columns.
std::uint32_t width_of(const std::vector<std::uint32_t>& buckets,
                       const std::vector<ReadyRow>& rows) {
  Batcher batcher({.slots = 8, .rows = 8, .width_buckets = buckets, .columns = {.context = 4}});
  for (std::size_t i = 0; i < rows.size(); ++i) batcher.add(*batcher.open(StreamId{i}), rows[i]);
  Batch batch;
  batcher.close(batcher.next(t0, true).value(), t0, batch);
  return batch.width;
}

using Buckets = std::vector<std::uint32_t>;

// The counters of the batches in which these streams' rows are handed over: each stream is a number
// of frames. One row of each stream per batch.
BatchStats& count_batches(BatchStats& stats, const ChunkRule& rule, const Buckets& buckets,
                          const std::vector<std::uint64_t>& streams) {
  const auto slots = static_cast<std::uint32_t>(streams.size());
  Batcher batcher(
      {.slots = slots, .rows = slots, .width_buckets = buckets, .columns = rule.columns()});
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const Slot slot = *batcher.open(StreamId{i});
    Chunker chunker(rule.spec);
    for (const Event& event :
         {Event{Event::Kind::frames, Cause::client, streams[i]}, Event{Event::Kind::end}}) {
      chunker.add(event);
      while (const auto row = chunker.next()) {
        ReadyRow ready = ready_row(0, 0, 0);
        ready.row = *row;
        batcher.add(slot, ready);
      }
    }
  }
  Batch batch;
  while (const auto choice = batcher.next(t0, true)) {
    batcher.close(*choice, t0, batch);
    stats.count(batch, slots);
  }
  return stats;
}

}  // namespace

TEST_CASE("the tensor is as wide as the narrowest bucket that holds the widest row") {
  const Buckets buckets{8, 12, 20};
  CHECK(width_of(buckets, {ready_row(0, 4, 0)}) == 8);
  CHECK(width_of(buckets, {ready_row(0, 5, 0)}) == 12);  // the context counts
  CHECK(width_of(buckets, {ready_row(4, 8, 0)}) == 12);
  CHECK(width_of(buckets, {ready_row(3, 8, 1)}) == 20);
  CHECK(width_of(buckets, {ready_row(0, 2, 0), ready_row(0, 16, 0), ready_row(0, 1, 0)}) == 20);
}

TEST_CASE("without buckets the tensor is as wide as its widest row") {
  CHECK(width_of({}, {ready_row(0, 2, 0), ready_row(0, 16, 0)}) == 20);
}

TEST_CASE("a batch of marker rows has no tensor, and the narrowest width") {
  CHECK(width_of({8, 12, 20}, {ready_row(0, 0, 0), ready_row(0, 0, 0)}) == 8);
}

TEST_CASE("the batch of a suspect has the width of the suspect") {
  std::vector<ReadyRow> rows{ready_row(0, 4, 0)};
  rows[0].suspect = true;
  CHECK(width_of({8, 12, 20}, rows) == 8);
}

TEST_CASE("the width of a row does not change which rows go into a batch") {
  BatchRule rule = rule_of(4, 2, 0ms);
  rule.width_buckets = {10, 1000};
  BatcherUnderTest lane(rule);
  lane.open("ABC");
  lane.row('A', 0ms, 0, 1000);
  lane.row('B', 1ms, 0, 10);
  lane.row('C', 2ms, 0, 1000);
  CHECK(lane.close(3ms) == "A0 B0 |");
  CHECK(lane.close(3ms) == "C0 |");
}

TEST_CASE("streams of one size have no more padding with the buckets of several sizes") {
  const std::vector<std::uint32_t> sizes{40, 80, 160, 320};
  for (const Align align : {Align::body, Align::packed})
    for (const std::uint32_t first : {0u, 350u})
      for (const std::uint32_t size : sizes) {
        ChunkRule all{.spec = {.size = 320, .first = first, .left = 30, .right = 20},
                      .align = align,
                      .sizes = {.sizes = SizeList(sizes)}};
        ChunkRule alone = all;
        alone.spec.size = size;
        alone.spec.first = first == 0 ? 0 : all.first_body(size);
        alone.sizes = {};
        Buckets widths;
        for (const std::uint32_t each : sizes) widths.push_back(all.width_of(each));
        // Whole rows alone, then with rows that an end cuts.
        for (const bool cut : {false, true}) {
          std::vector<std::uint64_t> streams;
          for (std::uint64_t n = 1; n < 8; ++n)
            streams.push_back(alone.first_body(size) + n * size + (cut ? 7 * n : 0));
          CAPTURE(name_of(align), first, size, cut);
          BatchStats many, one;
          count_batches(many, alone, widths, streams);
          count_batches(one, alone, {alone.width()}, streams);
          CHECK(many.rows.value() == one.rows.value());
          CHECK(many.frames_padded.value() <= one.frames_padded.value());
          CHECK(many.rows_frames_padded.value() <= one.rows_frames_padded.value());
        }
      }
}
