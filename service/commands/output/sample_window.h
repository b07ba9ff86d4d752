// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "service/commands/output/row_lines.h"

namespace millrace {

// The frames of an audio stream that later rows may need. Confined to one thread.
class SampleWindow : public FrameValues {
 public:
  explicit SampleWindow(std::uint32_t channels) : channels_(channels) {}

  // Appends the stream's next frames, with interleaved channels.
  void add(std::span<const std::int16_t> frames);
  // Forgets the frames before `position`, which are not needed any more.
  void drop_before(std::uint64_t position);

  void print(std::ostream& out, std::uint64_t position) const override;
  void print_zero(std::ostream& out) const override;

 private:
  std::uint32_t channels_;
  std::uint64_t begin_ = 0;  // position of the first frame in samples_
  std::vector<std::int16_t> samples_;
};

}  // namespace millrace
