// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "input/client_format.h"
#include "input/value_kernels.h"

namespace millrace {

// Makes one channel of a client's several: selects one, or averages all. Immutable after
// construction.
//
// A mean is rounded once, to a float, and a denormal mean is not yet zero. With `to_s16`, the mean
// of two s16 values is rounded to an s16, ties to even: the float would become the same s16 later.
class OneOfChannels {
 public:
  // The most values that apply() takes at once: it keeps no memory for a message.
  static constexpr std::size_t most_values = 2048;

  // Requires: `from.channel` is not AllChannels, and the format is not Opus.
  OneOfChannels(const ClientFormat& from, bool to_s16);

  // The format of the values that apply() writes: f32le for a mean, otherwise the client's.
  SampleFormat format() const { return format_; }

  // Writes one value for each of `frames` frames. Requires: these have at most most_values values.
  void apply(const std::byte* from, std::byte* to, std::size_t frames) const;

 private:
  using Kernel = void (*)(const std::byte* from, std::byte* to, std::size_t frames,
                          std::size_t channels);

  void choose_mean(const ClientFormat& from, bool to_s16);

  const std::size_t channels_;
  SampleFormat format_;
  std::size_t offset_ = 0;        // bytes to the first value that the kernel reads
  ValueKernel decode_ = nullptr;  // before the kernel; null: the kernel reads the client's values
  Kernel kernel_ = nullptr;
};

}  // namespace millrace
