// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "recording/files/directory.h"
#include "recording/files/recovery.h"
#include "schemas/recording/slice.h"

namespace millrace::recording {

// Notices of the recorder, for a log. None has the name of a stream. Called on the thread that
// constructs the recorder, and later on the recorder's thread; failed() on the thread of Upkeep.
class RecorderNotices {
 public:
  virtual ~RecorderNotices() = default;

  // The last segment file was left unsealed by a crash or because there was no space, and is sealed
  // now.
  virtual void recovered(const Recovered&) {}
  // A file that this process wrote is sealed.
  virtual void sealed(FileNumber) {}
  // A file stays unsealed, for `millrace recordings repair`.
  virtual void left_unsealed(FileNumber, std::string_view /*why*/) {}
  // Nothing is recorded from now on, until resumed().
  virtual void suspended(std::string_view /*why*/) {}
  virtual void resumed() {}
  virtual void dropped(std::uint64_t /*slices*/, DropReason) {}
  // A sealed file could not be rewritten or deleted.
  virtual void failed(std::string_view /*why*/) {}
};

}  // namespace millrace::recording
