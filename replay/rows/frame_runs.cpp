// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/frame_runs.h"

#include <algorithm>
#include <cassert>

namespace millrace {

void FrameRuns::append(Bytes frames) {
  assert(frames.size() % frame_bytes_ == 0);
  if (frames.empty()) return;
  if (!runs_.empty() && runs_.back().bytes.data() + runs_.back().bytes.size() == frames.data()) {
    Bytes& last = runs_.back().bytes;
    last = {last.data(), last.size() + frames.size()};
  } else {
    runs_.push_back(Run{end_, frames});
  }
  end_ += frames.size() / frame_bytes_;
}

std::array<Bytes, 2> FrameRuns::window(std::uint64_t begin, std::uint64_t count,
                                       std::vector<std::byte>& copy) const {
  copy.clear();
  std::array<Bytes, 2> parts{};
  const std::uint64_t stop = begin + count;
  std::size_t found = 0;
  for (std::size_t i = 0; i < runs_.size() && runs_[i].begin < stop; ++i) {
    const std::uint64_t from = std::max(begin, runs_[i].begin);
    const std::uint64_t to = std::min(stop, end_of(runs_[i]));
    if (from >= to) continue;
    const Bytes part =
        runs_[i].bytes.subspan(static_cast<std::size_t>(from - runs_[i].begin) * frame_bytes_,
                               static_cast<std::size_t>(to - from) * frame_bytes_);
    if (found < parts.size()) {
      parts[found] = part;
    } else {
      if (copy.empty())
        for (const Bytes& before : parts) copy.insert(copy.end(), before.begin(), before.end());
      copy.insert(copy.end(), part.begin(), part.end());
    }
    ++found;
  }
  if (!copy.empty()) parts = {Bytes(copy), Bytes()};
  assert(parts[0].size() + parts[1].size() == count * frame_bytes_);
  return parts;
}

void FrameRuns::release(std::uint64_t index) {
  while (!runs_.empty() && end_of(runs_.front()) <= index) runs_.pop_front();
}

}  // namespace millrace
