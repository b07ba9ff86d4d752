// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/frame_type.h"
#include "base/result.h"
#include "base/time.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/filling/stream_error.h"
#include "training/filling/streams/stream_function.h"
#include "workers/library/worker_batch.h"

namespace millrace::training {

// Settings of a Loader.
struct LoaderSettings {
  Rank rank{};
  std::uint64_t stride = 1;        // read every stride-th step
  std::uint64_t first_step = 0;    // where the epochs after the first one begin; < stride
  std::uint32_t threads = 1;       // that fill batches; 0: next_until() fills
  std::uint32_t most_threads = 0;  // if more: threads are added up to it while the caller waits
  std::uint32_t prefetch = 0;      // batches that are filled ahead; 0: automatic_prefetch()
  std::uint32_t buffers = 64;      // most batches that are kept or filled at once
  std::string device = "host";     // or cuda:N, or cuda: the first device
  Element dtype = Element::f32;    // the type of the tensor
  std::uint32_t context = 0;       // columns before a body: ChunkRule::columns()
  bool skip_failed = false;        // as FillerSettings::skip_failed
  bool repeat = false;  // the first and last frame fill the columns around a window, not zeros
};

// The format of the tensors of a catalog.
RowFormat format_of(const Catalog& catalog, const LoaderSettings& settings);

// As many batches as have 16 MiB together, from 3 to 16: threads wake each other when half of them
// are filled or taken, and a wake-up costs as much as a small batch. Always less than `buffers`, if
// these are 2 or more.
std::uint32_t automatic_prefetch(const Catalog& catalog, const Plan& plan,
                                 const LoaderSettings& settings);

// Counts since the loader was made.
struct LoaderStats {
  std::uint64_t batches = 0;        // taken
  std::uint64_t frames = 0;         // columns of their tensors, padding included
  std::uint64_t padding = 0;        // padding columns among these
  std::uint64_t bodies = 0;         // frames of the bodies of their rows
  Duration waited{};                // in next_until(), for a batch
  Duration filling{};               // time of all threads that fill
  std::optional<Duration> first{};  // from the construction to the first batch
  std::uint32_t kept = 0;           // batches that are taken and not given back
};

// Fills the batches of a plan, in order, and hands them to a consumer in the same process. A batch
// is written again only after give_back(). Batches may be given back in any order.
//
// Batches have no `closed` of a service: it is the time when they were written. Their `opened`
// lists the rows with PlannedRow::opens, with stream and slot only.
//
// give_back() and stats() are thread-safe. All else is confined to one thread.
class Loader {
 public:
  // Opens no file and starts no thread before the first next_until(). Throws DeviceFailure if the
  // device does not exist.
  Loader(std::shared_ptr<const Catalog> catalog, std::shared_ptr<const Plan> plan,
         const LoaderSettings& settings, std::shared_ptr<StreamFunction> function = nullptr);
  // As stop(). All batches must have been given back, or their memory must not be used any more.
  ~Loader();

  // The next batch. Its message lists streams that are skipped from it on (HandedBatch::failed).
  // Nullopt: no batch before `deadline`, or, if at_end(), the epoch has ended. The
  // error comes again at the same step, until seek(). Throws std::length_error if all buffers are
  // kept, std::system_error, DeviceFailure, and the exceptions of readers and of Plan::epoch().
  // Without threads it fills the batch itself, also after the deadline. If `deadline` is not
  // Time::min(), it may stop the threads and start more.
  Result<std::optional<WorkerBatch>, DataError> next_until(Time deadline);
  // True if the last next_until() found the end of the epoch. The next call begins the next one.
  bool at_end() const;

  // The position of the next batch.
  PlanPosition position() const;
  // The number of threads that fill. As stop(), if it is another one. Requires: made with threads.
  void set_threads(std::uint32_t threads);
  std::uint32_t threads() const;
  // Continues there. As stop(). `resets`: the states of the slots are lost: in the first batch,
  // each row of a slot has RESET. At another position, streams that have failed are read again.
  void seek(PlanPosition position, bool resets = false);
  // Continues at the position of another loader of the plan, even if its threads cannot be stopped.
  // Streams that have failed in its batches stay so.
  void follow(const Loader& former);
  // Ends all threads, and drops the batches that were not taken. The next next_until() starts
  // again, at the same position. Waits for the row that is under way, and so for the call of a
  // reader or a function: the caller must not hold a lock that these need, such as Python's GIL.
  void stop() { stop_until(Time::max()); }
  // The same. False: a call, or the distribution of an epoch, has not ended at the deadline; until
  // a later call ends the threads, only that call, give_back(), stats() and the destructor, which
  // waits, are allowed.
  bool stop_until(Time deadline);
  // Steps of the current epoch, for this rank and stride 1. Distributes the epoch if that was not
  // done yet, but starts no thread. Calls `poll` meanwhile, and throws what it throws.
  std::uint64_t steps(const Poll& poll = {});
  // The same for another epoch, such as the next one.
  std::uint64_t steps_of(std::uint64_t epoch, const Poll& poll = {});
  // The current epoch, as steps().
  std::shared_ptr<const EpochPlan> epoch_plan(const Poll& poll = {});

  // As Worker::use_on().
  void use_on(const WorkerBatch& batch, DeviceStream stream);
  // The number of the CUDA device in this process; -1: the host.
  int ordinal() const;
  // The batch is not used any more. On a device: except by the work that the streams of use_on()
  // have now.
  void give_back(WorkerBatch& batch);

  LoaderStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::training
