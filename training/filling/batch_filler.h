// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/time.h"
#include "gpu/host/row_format.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_messages.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/filling/batch_buffers.h"
#include "training/filling/epochs.h"
#include "training/filling/stream_error.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::training {

struct FillerSettings {
  Rank rank{};
  std::uint64_t stride = 1;      // read every stride-th step
  std::uint64_t first_step = 0;  // where the epochs after the first one begin; < stride
  std::uint32_t threads = 1;     // that fill batches; 0: next_until() fills
  std::uint32_t ahead = 0;       // most batches that are begun and not taken; 0: no limit
  std::uint32_t buffers = 1;     // number of buffers
  RowFormat format{};            // in which buffers are written
  // Rows of a stream that cannot be delivered are padding rows from then on, up to the end of the
  // stream in its epoch. Otherwise the step is a DataError.
  bool skip_failed = false;
  // Called when an empty queue of results gets one, on a thread of the filler. Must not throw.
  std::function<void()> on_filled{};

  // Threads wake each other when half of the batches that are filled ahead are filled, or gone.
  std::size_t half_ahead() const {
    return std::max<std::size_t>(1, (ahead > 0 ? ahead : buffers) / 2);
  }
};

// A batch in a buffer. Its message lacks `slab`, `copied`, and the names and options in `opened`,
// which lists each stream once that has a row with PlannedRow::opens.
struct FilledBatch {
  std::uint32_t buffer = 0;
  SlabShape shape;
  worker_protocol::HandedBatch message;
  std::vector<DataError> failed;  // streams whose rows are padding rows from this batch on
};
// The epoch has ended.
struct EpochEnd {
  std::uint64_t epoch = 0;
};
// All buffers were taken, and the next batch needs one.
struct NoBuffer {};

using FillResult = std::variant<FilledBatch, EpochEnd, NoBuffer, DataError>;

// Fills the batches of a plan, in order, in buffers that its owner gives it. With threads, the rows
// of a batch are divided among them by slot, so that each stream is read by one thread. A buffer
// belongs to the filler from give() until its batch is taken.
//
// give() and filling() are thread-safe. All else is confined to one thread.
class BatchFiller {
 public:
  // Starts nothing. `buffers` must outlive it. Requires: epochs->plan() is a plan of the catalog.
  BatchFiller(std::shared_ptr<const Catalog> catalog, std::shared_ptr<Epochs> epochs,
              BatchBuffers& buffers, FillerSettings settings,
              std::shared_ptr<StreamFunction> function = nullptr);
  // As stop(). Buffers are not used any more.
  ~BatchFiller();

  // Fills the batches from this position on, across the ends of epochs. Requires: not running().
  // `resets`: the states of the slots are lost: the first row of each slot has RESET. Streams that
  // have failed in this epoch stay so, up to set_failed(). Throws std::system_error.
  void start(PlanPosition position, bool resets = false);
  // The number of threads of the next start(), at least 1. Requires: not running(), and made with
  // threads.
  void set_threads(std::uint32_t threads);
  // These streams have failed, and all others are read again. Requires: not running().
  void set_failed(const FailedStreams& streams);
  // Ends the threads, after the row and the call of a reader or function that are under way. The
  // caller must not hold a lock for which these wait (Python's GIL). Batches that were not taken
  // are dropped; their buffers need not be given again.
  void stop() { stop_until(Time::max()); }
  // The same. False: a call has not ended at the deadline; until a later call ends the threads,
  // only that call, give() and the destructor are allowed.
  bool stop_until(Time deadline);
  bool running() const;

  // A buffer may be written. `spent`: a message whose memory is used again.
  // Requires: it was never given, or its batch was taken.
  void give(std::uint32_t buffer, worker_protocol::HandedBatch spent = {});

  // The next result, in order. Nullopt: none before `deadline`. After DataError, and after an
  // exception, the same comes again until stop(). Throws the exceptions of readers and buffers.
  // Requires: running.
  std::optional<FillResult> next_until(Time deadline);

  // The time that the threads have spent on rows, together.
  Duration filling() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::training
