// SPDX-License-Identifier: Apache-2.0
#include "training/filling/streams/streams_ahead.h"

namespace millrace::training {

void StreamsAhead::add(const StreamCopy& stream, Step needed, Opened opened) {
  const std::size_t memory = opened ? opened->memory() : 0;
  streams_.emplace(stream, Ahead{needed, std::move(opened), memory});
  memory_ += memory;
}

std::optional<StreamsAhead::Opened> StreamsAhead::take(const StreamCopy& stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return std::nullopt;
  std::optional<Opened> opened(std::move(found->second.opened));
  erase(found);
  return opened;
}

void StreamsAhead::drop_until(Step step) {
  for (auto ahead = streams_.begin(); ahead != streams_.end();)
    ahead = ahead->second.needed <= step ? erase(ahead) : std::next(ahead);
}

StreamsAhead::Streams::iterator StreamsAhead::erase(Streams::iterator ahead) {
  memory_ -= ahead->second.memory;
  return streams_.erase(ahead);
}

}  // namespace millrace::training
