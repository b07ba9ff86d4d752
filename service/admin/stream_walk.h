// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "service/admin/stream_query.h"
#include "streams/stream_table.h"

namespace millrace {

// A live stream.
struct StreamLine {
  std::string name;
  std::string pipeline;
  std::uint64_t frames = 0;  // position
  Duration signal{};         // the same as a time
  Duration age{};
  Duration held{};               // signal that the service has and no worker is done with
  std::uint64_t held_bytes = 0;  // memory: frames, and results that its client has not taken
  bool paused = false;
  bool connected = true;  // its client is still there
  std::string peer{};     // the client's address; empty if it is not known
};

// The first streams of a query, in any order, and the number of all streams that it names.
struct StreamList {
  std::vector<StreamLine> lines;
  std::size_t total = 0;
};

// Sorts by `order`, and keeps at most `limit` lines.
void sort(std::vector<StreamLine>& lines, StreamOrder order, std::size_t limit);

// Lists the streams of one io thread in slices of less than a millisecond. Between two slices the
// thread does its other work: streams may come and go. Confined to that thread.
class StreamWalk {
 public:
  static constexpr std::size_t slice = 250;  // streams, and empty places of the table, at a time

  StreamWalk(StreamQuery query, Time now) : query_(std::move(query)), now_(now) {}

  // Does the next slice. True when the list is complete.
  bool step(const StreamTable& table);
  StreamList take() { return std::move(list_); }

 private:
  // What a stream is sorted by; only the part that the order needs is set.
  struct Candidate {
    StreamId id;
    Time opened;
    std::uint64_t held = 0;
    std::string name{};
  };

  void look(const StreamTable& table);
  void consider(Stream& stream);
  void keep_first();
  void describe(const StreamTable& table);
  bool before(const Candidate& a, const Candidate& b) const;

  const StreamQuery query_;
  const Time now_;
  std::size_t buckets_ = 0;  // of the table when the walk began
  std::size_t next_ = 0;     // bucket to look at, and afterwards candidate to describe
  bool looked_ = false;      // at all streams
  std::vector<Candidate> candidates_;
  StreamList list_;
};

}  // namespace millrace
