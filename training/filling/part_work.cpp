// SPDX-License-Identifier: Apache-2.0
#include "training/filling/part_work.h"

#include <vector>

namespace millrace::training {

void PartWork::add(PartTask task) {
  if (!task.fills) {
    planned_.push_back(task.job);
    return;
  }
  fills_.push_back(task.job);
  if (planned_.empty() || planned_.front() != task.job) return;
  planned_.pop_front();
  if (looked_at_ > 0)
    --looked_at_;
  else
    row_ = 0;
}

FillingJob* PartWork::next_fill() {
  if (fills_.empty()) return nullptr;
  FillingJob* const job = fills_.front();
  fills_.pop_front();
  return job;
}

void PartWork::run(Queue<PartTask>& tasks, RowFiller& filler, const SharedFilling& filling,
                   const std::function<void(FillingJob&)>& fill) {
  std::vector<PartTask> waiting;
  while (!filling.is_stopping()) {
    tasks.drain(waiting);
    for (const PartTask& task : waiting) add(task);
    if (FillingJob* const job = next_fill()) {
      fill(*job);
    } else if (!open_next(filler)) {
      const auto task = tasks.pop_until(Time::max());
      if (!task) return;
      add(*task);
    }
  }
}

bool PartWork::open_next(RowFiller& filler) {
  for (; looked_at_ < planned_.size(); ++looked_at_, row_ = 0) {
    const PlannedBatch& batch = planned_[looked_at_]->planned;
    for (; row_ < batch.framed.size(); ++row_) {
      if (!filler.opens(batch, row_)) continue;
      if (!filler.has_room()) return false;
      filler.open_ahead(batch, row_++);
      return true;
    }
  }
  return false;
}

}  // namespace millrace::training
