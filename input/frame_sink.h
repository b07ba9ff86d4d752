// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// Where converted frames go: into memory that it returns.
class FrameSink {
 public:
  // Memory for the next frames: at least one and at most `frames` whole frames.
  virtual MutableBytes writable(std::size_t frames) = 0;
  // The first `frames` frames of the memory that writable() returned last are written.
  virtual void append(std::size_t frames) = 0;

 protected:
  ~FrameSink() = default;
};

// The frames that a conversion appended to a sink.
struct Appended {
  std::uint64_t frames = 0;   // in frames of the pipeline
  std::uint64_t clamped = 0;  // values outside the pipeline's range

  Appended& operator+=(const Appended& more) {
    frames += more.frames;
    clamped += more.clamped;
    return *this;
  }
};

}  // namespace millrace
