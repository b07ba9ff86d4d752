// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "recording/files/directory.h"
#include "recording/files/recovery.h"
#include "recording/files/retention.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// Notices of the recorder, for a log. None has the name of a stream. Called on the thread that
// constructs the recorder, and later on the recorder's thread; those of Upkeep on its thread.
class RecorderNotices {
 public:
  virtual ~RecorderNotices() = default;

  // The directory is open: the number of the next stream is known. Called once, before suspended()
  // or after it.
  virtual void opened(std::uint64_t /*next_stream*/) {}
  // A recording file of an earlier run. Streams that were removed may still be in it: the service
  // or `rm` may have been killed before it was rewritten.
  virtual void found(FileNumber) {}
  // A file of the directory cannot be read: recording continues without it.
  virtual void skipped(std::string_view /*file*/, std::string_view /*why*/) {}
  // Other users have access to the directory.
  virtual void shared(unsigned /*mode*/) {}
  // The last recording file was left unsealed by a crash or because there was no space, and is
  // sealed now.
  virtual void recovered(const Recovered&) {}
  // A file that this process wrote is sealed.
  virtual void sealed(FileNumber) {}
  // A file stays unsealed, for `millrace recordings repair`.
  virtual void left_unsealed(FileNumber, std::string_view /*why*/) {}
  // Nothing is recorded from now on, until resumed().
  virtual void suspended(std::string_view /*why*/) {}
  virtual void resumed() {}
  // Slices were dropped: their number so far in this suspension, and why the last of them. Called
  // at growing intervals, and at the end of the suspension.
  virtual void dropped(std::uint64_t /*slices*/, DropReason) {}

  // Upkeep could not rewrite or delete a sealed file, or has rewritten one that was damaged.
  virtual void failed(std::string_view /*why*/) {}
  // Streams that were removed are no longer in this file.
  virtual void rewritten(FileNumber, std::uint64_t /*bytes saved*/) {}
  virtual void deleted(const Deleted&) {}
  // Another process has had the lock for maintenance for a minute, and still has it.
  virtual void waits_for_process() {}
  // Nothing is deleted by its age until the wall clock can be believed.
  virtual void waits_for_clock() {}
};

}  // namespace millrace::recording
