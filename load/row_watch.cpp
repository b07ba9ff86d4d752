// SPDX-License-Identifier: Apache-2.0
#include "load/row_watch.h"

#include <utility>
#include <vector>

namespace millrace::load {

RowWatch::RowWatch(Worker worker, const RunFacts& run)
    : worker_(std::move(worker)),
      answers_(run.answered),
      check_(run, worker_.width(), worker_.dtype()) {
  thread_ = std::jthread([this] { work(); });
}

RowWatch::~RowWatch() { worker_.close(); }

WorkerOutcome RowWatch::finish() {
  worker_.bye();
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(check_.outcome());
}

void RowWatch::work() {
  try {
    std::vector<Answer> answers;
    while (auto batch = worker_.next()) {
      look(*batch);
      const auto& rows = batch->framed();
      answers.resize(answers_ ? rows.size() : 0, {Answer::Kind::json, {}});
      for (std::size_t i = 0; i < answers.size(); ++i) check_.answer(rows[i], answers[i].data);
      const std::size_t count = rows.size();
      worker_.done(*batch, answers);
      rows_ += count;
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void RowWatch::look(const WorkerBatch& batch) {
  ++check_.outcome().batches;
  for (const auto& opened : batch.opened()) check_.open(opened.stream, opened.name);
  for (std::uint32_t i = 0; i < batch.framed().size(); ++i)
    check_.look_at(batch.framed()[i], batch.row(i), batch.taken());
  for (const auto& mark : batch.marks()) check_.look_at_mark(mark, batch.taken());
}

}  // namespace millrace::load
