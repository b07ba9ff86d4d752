// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A stream in an epoch. `copy`: copies of it before this one, if the epoch repeats the stream.
struct StreamCopy {
  std::uint64_t epoch = 0;
  std::uint64_t stream = 0;
  std::uint32_t copy = 0;
  auto operator<=>(const StreamCopy&) const = default;
};

// A function of the user that changes a whole stream before it is cut (augmentation). It gives the
// same result each time for a StreamCopy.
//
// Called on the threads of a BatchFiller, by several at the same time for different streams. An
// exception counts as an error of the function.
class StreamFunction {
 public:
  virtual ~StreamFunction() = default;

  // Frames and companions of a whole stream.
  struct Content {
    std::vector<std::byte> frames;
    std::vector<std::vector<std::byte>> companions;
  };
  // Changes `content`. It must then have as many frames as frames() gives, and the entries of
  // that number of frames.
  virtual Result<void, ReadError> change(const StreamCopy& stream, Content& content) = 0;

  // The number of frames after change(), as in PlanOptions::frames. `frames` is the number before.
  // Throws LengthFailure.
  virtual std::uint64_t frames(const StreamCopy&, std::uint64_t frames) { return frames; }

  // Calls that are under way in other processes return an error, and so do later ones. Thread-safe.
  virtual void stop() {}
};

// StreamFunction::frames() of a stream failed when an epoch was distributed.
class LengthFailure : public std::runtime_error {
 public:
  LengthFailure(const std::string& why, std::uint64_t for_epoch, std::uint64_t for_stream,
                std::string its_name)
      : std::runtime_error(why), epoch(for_epoch), stream(for_stream), name(std::move(its_name)) {}

  const std::uint64_t epoch, stream;
  const std::string name;
};

// PlanOptions::frames for a function. `skips`: a stream for which frames() fails keeps its length,
// and fails again when it is opened; that error can be skipped.
inline auto lengths_after(std::shared_ptr<StreamFunction> function,
                          std::shared_ptr<const Catalog> catalog, bool skips) {
  return [function = std::move(function), catalog = std::move(catalog), skips](
             std::uint64_t epoch, std::uint64_t stream, std::uint32_t copy) {
    const std::uint64_t frames = catalog->frames(stream);
    try {
      return function->frames({epoch, stream, copy}, frames);
    } catch (const LengthFailure&) {
      if (!skips) throw;
      return frames;
    }
  };
}

}  // namespace millrace::training
