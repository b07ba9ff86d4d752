// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/filling/streams/open_stream.h"

namespace millrace::training {

// Streams that are opened before the batch that needs them, or the errors of opening them. Bounded
// in number and in memory.
//
// Confined to one thread.
class StreamsAhead {
 public:
  using Opened = Result<OpenStream, ReadError>;
  using Step = std::pair<std::uint64_t, std::uint64_t>;  // epoch and step of a batch

  StreamsAhead(std::size_t most_streams, std::size_t most_memory)
      : most_streams_(most_streams), most_memory_(most_memory) {}

  // Whether another stream may be opened. Its memory is not known before.
  bool has_room() const { return streams_.size() < most_streams_ && memory_ < most_memory_; }
  bool has(const StreamCopy& stream) const { return streams_.contains(stream); }
  // Requires: !has(stream).
  void add(const StreamCopy& stream, Step needed, Opened opened);
  // Nullopt: it was not opened ahead.
  std::optional<Opened> take(const StreamCopy& stream);
  // Drops the streams that were needed up to this step, and were not taken.
  void drop_until(Step step);

 private:
  struct Ahead {
    Step needed;
    Opened opened;
    std::size_t memory;
  };
  using Streams = std::map<StreamCopy, Ahead>;
  Streams::iterator erase(Streams::iterator ahead);

  const std::size_t most_streams_, most_memory_;
  Streams streams_;
  std::size_t memory_ = 0;  // bytes of all of them
};

}  // namespace millrace::training
