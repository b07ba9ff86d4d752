// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>
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

  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [id, stream] : streams_) visit(*stream);
  }

 private:
  std::unordered_map<StreamId, std::unique_ptr<LiveStream>> streams_;
};

}  // namespace millrace
