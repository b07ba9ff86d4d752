// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/items.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "chunker/spec.h"
#include "training/plans/rows/stream_steps.h"

namespace millrace::training {
namespace {

StreamRef stream_at(const EpochStreams& streams, std::uint64_t place) {
  return {streams.stream(place), streams.frames(place), streams.has_events(place)};
}

// Counts the rows of the streams in an order of their places.
template <class Place>
Items counted(const EpochStreams& streams, const StreamCutter& cutter, const Poll& poll,
              Place place) {
  Polling polling(poll);
  auto index = std::make_shared<RowIndex>(streams.size());
  Items items{.order = Items::Order::rows, .streams = streams.size()};
  for (std::uint64_t i = 0; i < streams.size(); ++i) {
    const StreamRef stream = stream_at(streams, place(i));
    const RowCounts counts = cutter.counts(stream);
    items.events = items.events || stream.events;
    index->add(counts.framed);
    items.frames += counts.frames;
    polling.done();
  }
  index->finish();
  items.index = std::move(index);
  return items;
}

}  // namespace

Items shuffled_rows(const EpochStreams& streams, const StreamCutter& cutter, const Poll& poll) {
  return counted(streams, cutter, poll, [](std::uint64_t i) { return i; });
}

std::vector<Items> shuffled_buckets(const EpochStreams& streams, const StreamCutter& cutter,
                                    const RowWidths& widths,
                                    const std::vector<std::uint32_t>& buckets, const Poll& poll) {
  Polling polling(poll);
  std::vector<Items> groups(buckets.size() + 1);
  std::vector<std::shared_ptr<RowIndex>> indices;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    indices.push_back(std::make_shared<RowIndex>(streams.size()));
    groups[i].order = Items::Order::rows;
    groups[i].streams = streams.size();
    groups[i].bucket = {.above = i > 0 ? buckets[i - 1] : 0,
                        .most = i < buckets.size() ? buckets[i] : max_window};
  }
  StreamSteps steps;
  std::vector<std::uint64_t> counts(groups.size());
  for (std::uint64_t place = 0; place < streams.size(); ++place) {
    std::ranges::fill(counts, 0u);
    for (steps.open(cutter, stream_at(streams, place), 0); !steps.ended(); steps.advance(1)) {
      const Row row = steps.row().row;
      const auto group = static_cast<std::size_t>(
          std::ranges::lower_bound(buckets, widths.columns(row)) - buckets.begin());
      ++counts[group];
      groups[group].frames += row.size;
      polling.done();
    }
    polling.done();
    for (std::size_t i = 0; i < groups.size(); ++i) indices[i]->add(counts[i]);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    indices[i]->finish();
    groups[i].index = std::move(indices[i]);
  }
  return groups;
}

Items shuffled_streams(const EpochStreams& streams, const StreamCutter& cutter,
                       const Shuffle& shuffle, std::uint64_t key, const Poll& poll) {
  WindowedPermutation order(shuffle, streams.size(), key);
  Items items = counted(streams, cutter, poll, [&](std::uint64_t i) { return order[i]; });
  items.order = Items::Order::streams;
  return items;
}

Items ordered_streams(const EpochStreams& streams, const StreamCutter& cutter,
                      std::vector<std::uint32_t> places, const Poll& poll) {
  Items items = counted(streams, cutter, poll, [&](std::uint64_t i) { return places[i]; });
  items.order = Items::Order::streams;
  items.places = std::move(places);
  return items;
}

std::vector<Items> whole_streams(const EpochStreams& streams,
                                 const std::vector<std::uint32_t>& buckets, std::uint32_t longest,
                                 const Poll& poll) {
  Polling polling(poll);
  std::vector<Items> groups(buckets.size() + 1);
  for (std::uint64_t place = 0; place < streams.size(); ++place) {
    polling.done();
    const std::uint64_t frames = streams.frames(place);
    if (frames == 0) continue;
    if (frames > longest)
      throw std::length_error("stream " + std::to_string(streams.stream(place)) + " has " +
                              std::to_string(frames) + " frames; the widest batch has " +
                              std::to_string(longest));
    const auto bucket = std::ranges::lower_bound(buckets, frames) - buckets.begin();
    Items& items = groups[static_cast<std::size_t>(bucket)];
    items.places.push_back(static_cast<std::uint32_t>(place));
    items.frames += frames;
  }
  for (Items& items : groups) items.order = Items::Order::whole;
  return groups;
}

}  // namespace millrace::training
