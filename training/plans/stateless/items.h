// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "training/contract/poll.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/order/windowed_permutation.h"
#include "training/plans/rows/row_widths.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/stateless/row_index.h"

namespace millrace::training {

// A row of a stream, by the stream's place in EpochStreams.
using Item = RowIndex::Position;

// Rows of more than `above` columns, up to `most`.
struct Bucket {
  std::uint32_t above = 0, most = 0;

  bool holds(std::uint32_t columns) const { return columns > above && columns <= most; }
};

// The rows of an epoch, or of a group of them, before they are shuffled. Immutable.
struct Items {
  enum class Order : std::uint8_t {
    rows,     // rows of all streams are shuffled
    streams,  // streams are shuffled; the rows of a stream stay together
    whole,    // each stream is one row
  };

  Order order = Order::whole;
  std::shared_ptr<const RowIndex> index{};  // rows: by place; streams: in their shuffled order
  std::vector<std::uint32_t> places{};      // whole: the streams; streams: those of an order
  std::uint64_t streams = 0;                // rows and streams: the number of places
  std::uint64_t frames = 0;                 // frames of all bodies
  std::optional<Bucket> bucket{};           // rows: only those of this bucket count
  bool events = false;                      // rows: a stream has inner events

  std::uint64_t size() const { return order == Order::whole ? places.size() : index->rows(); }
};

// All call `poll`.
Items shuffled_rows(const EpochStreams& streams, const StreamCutter& cutter, const Poll& poll = {});
// The rows in groups by their columns: up to each of `buckets`, and above the last one. Cuts all
// streams.
std::vector<Items> shuffled_buckets(const EpochStreams& streams, const StreamCutter& cutter,
                                    const RowWidths& widths,
                                    const std::vector<std::uint32_t>& buckets, const Poll& poll);
// `shuffle` and `key` are those of the ItemOrder that reads them.
Items shuffled_streams(const EpochStreams& streams, const StreamCutter& cutter,
                       const Shuffle& shuffle, std::uint64_t key, const Poll& poll);
// The same in the order of these places: ItemOrder must not shuffle.
Items ordered_streams(const EpochStreams& streams, const StreamCutter& cutter,
                      std::vector<std::uint32_t> places, const Poll& poll);
// The streams in groups by length: up to each of `buckets`, and above the last one. Throws
// std::length_error if a stream has more than `longest` frames.
std::vector<Items> whole_streams(const EpochStreams& streams,
                                 const std::vector<std::uint32_t>& buckets, std::uint32_t longest,
                                 const Poll& poll);

}  // namespace millrace::training
