// SPDX-License-Identifier: Apache-2.0
#include "service/commands/output/sample_window.h"

#include <cassert>
#include <ostream>
#include <utility>

namespace millrace {
namespace {

template <class Samples>
void print_frame(std::ostream& out, const Samples& channels) {
  if (channels.size() == 1) {
    out << channels.front();
    return;
  }
  char separator = '[';
  for (const auto sample : channels) out << std::exchange(separator, ',') << sample;
  out << ']';
}

}  // namespace

void SampleWindow::add(std::span<const std::int16_t> frames) {
  samples_.insert(samples_.end(), frames.begin(), frames.end());
}

void SampleWindow::drop_before(std::uint64_t position) {
  const std::size_t dropped = (position - begin_) * channels_;
  // Erases only if at least as many samples are erased as moved: constant time per frame.
  if (2 * dropped < samples_.size()) return;
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(dropped));
  begin_ = position;
}

void SampleWindow::print(std::ostream& out, std::uint64_t position) const {
  const std::size_t at = (position - begin_) * channels_;
  assert(position >= begin_ && at + channels_ <= samples_.size());
  print_frame(out, std::span(samples_).subspan(at, channels_));
}

void SampleWindow::print_zero(std::ostream& out) const {
  print_frame(out, std::vector<std::int16_t>(channels_));
}

}  // namespace millrace
