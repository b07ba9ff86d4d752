// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/stats.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A file operation that can fail.
enum class FileOperation : std::uint8_t { open, write, fsync, rename, unlink };

// An event in the life of a recording file.
enum class FileEvent : std::uint8_t {
  created,
  sealed,
  recovered,    // sealed after a crash
  truncated,    // its torn tail was cut
  quarantined,  // left unsealed for `repair`
  deleted,      // by retention
};

// The recorder. Written by its thread.
struct RecordingStats {
  Histogram queue_wait{buckets::fast};  // from the first event of a page to the recorder
  Gauge streams;                        // being recorded
  Counter written_bytes;
  Counter slices;
  Labelled<Counter, DropReason> dropped;  // slices
  Labelled<Counter, FileOperation> errors;
  Histogram write_time{buckets::io};
  Histogram sync_time{buckets::io};
  Gauge unsynced_bytes;
  Gauge last_sync;  // seconds since 1970
  Gauge free_bytes;
  Gauge suspended;  // 1 while nothing is recorded because of the disk
  Labelled<Counter, FileEvent> files;
  Counter truncated_bytes;
};

// A tap's part of it, on one io thread. Written by that thread.
struct TapStats {
  Labelled<Counter, DropReason> dropped;  // slices that did not get into the queue
};

}  // namespace millrace::recording
