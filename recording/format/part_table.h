// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schemas/slices/slice.h"

namespace millrace::recording {

// Positions [begin, end) of a stream, whose events are not in the file, and no slice says why. They
// can be equal: not all events have frames.
struct LostPart {
  std::uint64_t stream = 0;
  std::uint64_t begin = 0, end = 0;
};

// The parts of streams in one recording file, added up from their slices. Confined to one thread.
class PartTable {
 public:
  // The part of a stream, or nullptr if it has no slice. Valid until the next add().
  const StreamPart* find(std::uint64_t stream) const;
  // False if a valid file cannot have this slice after those of its stream: its number or its
  // position is lower.
  bool can_follow(std::uint32_t number, const Slice& slice) const;
  // Adds the next slice of its stream. `number`: of the slice in its stream.
  void add(std::uint16_t channel, std::uint32_t number, const Slice& slice);
  // Sets the part of a stream to this one.
  void put(const StreamPart& part);
  // The file has less of this stream than was recorded, or of all streams that are not closed.
  void set_lost(std::uint64_t stream);
  void set_lost();

  // Slices that are missing between two slices of the file, in the order of the file.
  const std::vector<LostPart>& losses() const { return losses_; }
  bool empty() const { return parts_.empty(); }
  std::size_t size() const { return parts_.size(); }
  // By the numbers of the streams, ascending.
  std::vector<StreamPart> list() const;

 private:
  struct Entry {
    StreamPart part{};
    std::uint64_t next = 0;  // number of the next slice
  };

  std::unordered_map<std::uint64_t, Entry> parts_;
  std::vector<LostPart> losses_;
};

}  // namespace millrace::recording
