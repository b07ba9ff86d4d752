// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "base/queue.h"
#include "training/filling/filling_job.h"
#include "training/filling/row_filler.h"
#include "training/filling/shared_filling.h"

namespace millrace::training {

// A batch for a thread of a BatchFiller: to be filled, or planned, so that its streams can be
// opened ahead. A planned batch comes again when it is to be filled.
struct PartTask {
  FillingJob* job = nullptr;
  bool fills = false;
};

// The work of one thread of a BatchFiller. Batches are filled in their order; in the time that is
// left, the streams of planned ones are opened.
//
// Confined to one thread.
class PartWork {
 public:
  // In the order of the batches.
  void add(PartTask task);
  // The next batch to fill, or null.
  FillingJob* next_fill();
  // Fills and opens what the tasks name, until the queue is closed or the filling stops.
  void run(Queue<PartTask>& tasks, RowFiller& filler, const SharedFilling& filling,
           const std::function<void(FillingJob&)>& fill);
  // Opens the next stream of the planned batches. False: all are open, or there is no room.
  bool open_next(RowFiller& filler);

 private:
  std::deque<FillingJob*> fills_;
  std::deque<const FillingJob*> planned_;
  std::size_t looked_at_ = 0;  // batches of planned_ whose streams are open
  std::size_t row_ = 0;        // rows of the next one
};

}  // namespace millrace::training
