// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "schemas/recording/slice.h"

namespace millrace::recording {

// The parts of streams in one segment file, added up from their slices. Confined to one thread.
class PartTable {
 public:
  // Adds the next slice of its stream. `number`: of the slice in its stream.
  void add(std::uint16_t channel, std::uint32_t number, const Slice& slice);
  // The file has less of this stream than was recorded, or of all streams that are not closed.
  void set_lost(std::uint64_t stream);
  void set_lost();

  bool empty() const { return parts_.empty(); }
  // By the numbers of the streams, ascending.
  std::vector<StreamPart> list() const;

 private:
  std::map<std::uint64_t, StreamPart> parts_;
};

}  // namespace millrace::recording
