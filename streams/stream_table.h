// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/returned.h"
#include "streams/stream.h"

namespace millrace {

// The live streams of one io thread. Confined to it.
class StreamTable {
 public:
  Stream& add(std::unique_ptr<Stream> stream);
  // Destroys the stream if its connection is gone and its rows are done.
  void reap(const Stream& stream);

  // Passes the messages of the lanes to their streams, in order. Moves from `returned`.
  void deliver(std::span<Returned> returned);
  void drain(Time now);
  // The stream that would free the most memory if evicted; null if none holds more than an idle
  // one.
  Stream* largest() const;
  bool empty() const { return streams_.empty(); }
  // Sets a function to be called when the last stream is destroyed.
  void when_empty(std::function<void()> call) { when_empty_ = std::move(call); }
  std::vector<StreamId> without_goaway() const;

  Stream* find(StreamId stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : found->second.get();
  }

  // Visits the streams in some buckets of the table. Each stream is in one of `buckets()` buckets,
  // and stays there while their number does not change.
  std::size_t buckets() const { return streams_.bucket_count(); }
  template <class Visit>
  void each_in(std::size_t first, std::size_t last, Visit visit) const {
    for (std::size_t bucket = first; bucket < last; ++bucket)
      for (auto at = streams_.begin(bucket); at != streams_.end(bucket); ++at) visit(*at->second);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [id, stream] : streams_) visit(*stream);
  }

 private:
  std::unordered_map<StreamId, std::unique_ptr<Stream>> streams_;
  std::function<void()> when_empty_ = [] {};
};

}  // namespace millrace
