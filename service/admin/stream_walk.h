// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "service/admin/stream_query.h"
#include "streams/stream_table.h"

namespace millrace {

// One live stream in a list.
struct StreamLine {
  std::string name;
  std::string pipeline;
  std::string_view format{};  // format of the client's values: s16le, opus …
  double rate = 0;            // client frames per second
  Duration chunk{};           // size of the current body
  std::uint64_t frames = 0;   // position
  Duration signal{};          // position as a time
  Duration age{};
  Duration held{};               // signal of the frames that the service holds
  std::uint64_t held_bytes = 0;  // reclaimable memory: frames, and results not written yet
  bool paused = false;
  bool connected = true;  // its client is connected
  std::string peer{};     // the client's address; empty if unknown
};

// The first streams of a query, in any order, and the number of all streams that match it.
struct StreamList {
  std::vector<StreamLine> lines;
  std::size_t total = 0;
};

// Sorts the lines by `order` and keeps the first `limit` of them.
void sort(std::vector<StreamLine>& lines, StreamOrder order, std::size_t limit);

// Lists the streams of one io thread in slices of less than a millisecond. Between two slices the
// thread does its other work; streams may be added and removed. Confined to that thread.
class StreamWalk {
 public:
  static constexpr std::size_t slice = 250;  // buckets, or candidates, per slice

  StreamWalk(StreamQuery query, Time now) : query_(std::move(query)), now_(now) {}

  // Does the next slice. Returns true when the list is complete.
  bool step(const StreamTable& table);
  // Call it when the list is complete.
  StreamList take() { return std::move(list_); }

 private:
  // The sort keys of a stream. `held` and `name` are set only if the order needs them.
  struct Candidate {
    StreamId id;
    Time opened;
    std::uint64_t held = 0;
    std::string name{};
  };

  void scan(const StreamTable& table);
  void add_candidate(Stream& stream);
  void keep_first();
  void describe(const StreamTable& table);
  bool before(const Candidate& a, const Candidate& b) const;

  const StreamQuery query_;
  const Time now_;
  std::size_t buckets_ = 0;  // buckets of the table when the scan began
  std::size_t next_ = 0;     // bucket to scan, and afterwards candidate to describe
  bool scanned_ = false;     // all buckets
  std::vector<Candidate> candidates_;
  StreamList list_;
};

}  // namespace millrace
