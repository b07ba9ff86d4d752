// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "schemas/worker_messages.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/filling/batch_buffers.h"
#include "training/filling/batch_filler.h"
#include "training/filling/filling_job.h"
#include "training/filling/stream_error.h"

namespace millrace::training {

// Makes the jobs of a BatchFiller, in order: plans batches across the ends of epochs, some of them
// ahead, and gives them buffers. Owns the jobs, and knows the buffers that are free.
//
// Confined to one thread at a time.
class JobSource {
 public:
  static constexpr std::size_t most_planned = 256;  // batches that are planned ahead

  // The arguments must outlive it. `parts`: threads that fill. `ask` is called with the epochs that
  // it needs, for which set_epoch() is called later.
  JobSource(const Catalog& catalog, const Plan& plan, BatchBuffers& buffers,
            const FillerSettings& settings, std::size_t parts,
            std::function<void(std::uint64_t epoch)> ask);

  // `resets`: the states of the slots are lost: the first row of each slot has RESET.
  void start(PlanPosition position, bool resets);
  // Takes back all jobs, with their buffers. No thread may use them.
  void stop();
  // The number of threads that fill. Requires: stopped.
  void set_parts(std::size_t parts);

  void give(std::uint32_t buffer, worker_protocol::HandedBatch spent);
  // The epoch that was asked for, or the reason why it cannot be distributed.
  void set_epoch(std::shared_ptr<const EpochPlan> epoch, std::exception_ptr error);
  bool awaits_epoch() const { return planned_.empty() && !cursor_ && !epoch_error_; }
  // The consumer has taken the result.
  void take_back(FillingJob& job);

  // The next job. A batch has a buffer, and everything but its rows with frames is written. It
  // fails if it has more marker rows than a buffer has room for. If failed streams are skipped, a
  // stream is refused that would exceed this room if each row of its batch had as many. Null: it
  // must wait until a buffer is given, a result is taken, or the epoch is set. Throws the
  // exceptions of Plan::epoch() and BatchBuffers::memory().
  FillingJob* next();
  // Plans a batch that next() returns later, so that its streams can be opened. Null: enough
  // batches are planned, or the epoch is awaited or has an error, which next() throws in its order.
  FillingJob* plan_ahead();
  // The number of jobs since start(): the number of the next one.
  std::uint64_t begun() const { return begun_; }

 private:
  bool plan();
  static void add_resets(PlannedBatch& batch);
  void set_shape(FillingJob& job) const;
  bool has_too_many_marks(FillingJob& job) const;
  void refuse_marks(FillingJob& job);
  void lay_out(FillingJob& job);
  FillingJob& new_job();
  FillingJob* begin(FillingJob& job);
  FillingJob* begin_planned();

  const Catalog& catalog_;
  const Plan& plan_;
  BatchBuffers& buffers_;
  const FillerSettings& settings_;
  const std::uint32_t slots_;
  std::size_t parts_;
  const std::function<void(std::uint64_t)> ask_;

  std::vector<std::unique_ptr<FillingJob>> jobs_;
  std::vector<FillingJob*> idle_;
  std::vector<worker_protocol::HandedBatch> spent_;
  std::vector<std::uint32_t> free_;  // the buffer that was used last is the last

  PlanPosition position_;
  bool resets_ = false;  // the next batch has to add RESET
  std::shared_ptr<const EpochPlan> epoch_;
  std::unique_ptr<PlanCursor> cursor_;  // reads epoch_; null: the epoch is awaited
  std::exception_ptr epoch_error_;
  std::map<std::uint32_t, std::uint64_t>
      refused_;                          // by slot: a stream whose marker rows are left out
  std::deque<FillingJob*> planned_;      // the next batches and ends of epochs; have no buffer
  std::size_t rows_ = 0, openings_ = 0;  // in planned_
  std::uint64_t begun_ = 0;              // jobs since start()
  std::uint32_t untaken_ = 0;            // batches that are begun and not taken
  bool end_untaken_ = false;             // the end of an epoch is not taken
  bool starved_ = false;                 // the consumer knows that the next one needs a buffer
};

}  // namespace millrace::training
