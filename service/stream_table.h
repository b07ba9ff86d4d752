// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/live_stream.h"
#include "workers/returned.h"

namespace millrace {

// The live streams of one io thread. Confined to it.
class StreamTable {
 public:
  LiveStream& add(std::unique_ptr<LiveStream> stream);
  // Destroys the stream if nobody needs it any more: its connection is gone and its rows are done.
  void reap(StreamId stream);

  // What came back from the lanes, in order.
  void take(std::vector<Returned>& returned);
  void drain(Time now);
  // Which holds the most; null where none holds more than next to nothing.
  LiveStream* largest() const;
  bool empty() const { return streams_.empty(); }
  // `call` is called when the last stream has gone.
  void when_empty(std::function<void()> call) { when_empty_ = std::move(call); }
  std::vector<StreamId> without_goaway() const;

  LiveStream* find(StreamId stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : found->second.get();
  }

  // Visits the streams of some buckets of the table; a stream is in one of `buckets()`, and stays
  // there as long as their number does not change.
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
  std::unordered_map<StreamId, std::unique_ptr<LiveStream>> streams_;
  std::function<void()> when_empty_ = [] {};
};

}  // namespace millrace
