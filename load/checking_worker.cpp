// SPDX-License-Identifier: Apache-2.0
#include "load/checking_worker.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chunker/rule_json.h"

namespace millrace::load {

namespace {

// The pipeline's rule, from Welcome. Throws std::runtime_error for a rule of a later version.
ChunkRule rule_of(const Worker& worker) {
  const auto rule =
      rule_from_json(worker.chunk(), {.rate = worker.rate(), .features = worker.frames().features});
  if (!rule)
    throw std::runtime_error("the pipeline's chunk rule is not supported: " + rule.error().message);
  return *rule;
}

}  // namespace

CheckingWorker::CheckingWorker(Worker worker, const RunFacts& run, std::atomic<bool>& failed)
    : worker_(std::move(worker)),
      failed_(failed),
      answers_(run.answered),
      messages_(run.messages),
      row_check_(run, rule_of(worker_), worker_.frames()) {
  if (worker_.ordinal() >= 0) fetched_.emplace(worker_);
  thread_ = std::jthread([this] { work(); });
}

CheckingWorker::~CheckingWorker() { worker_.close(); }

WorkerOutcome CheckingWorker::finish() {
  finishing_ = true;
  report_ends();
  all_ended_.get_future().wait_for(std::chrono::seconds(5));
  worker_.bye();
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(row_check_.outcome());
}

void CheckingWorker::report_ends() {
  if (finishing_ && unended_ == 0 && !reported_.exchange(true)) all_ended_.set_value();
}

void CheckingWorker::work() {
  try {
    std::vector<Answer> answers;
    while (auto batch = worker_.next()) {
      check_batch(*batch);
      send_messages(*batch);
      const auto& rows = batch->framed();
      answers.resize(answers_ ? rows.size() : 0, {Answer::Kind::json, {}});
      for (std::size_t i = 0; i < answers.size(); ++i) row_check_.answer(rows[i], answers[i].data);
      const std::size_t count = rows.size();
      worker_.done(*batch, answers);
      rows_ += count;
      unended_ = row_check_.outcome().unended;
      report_ends();
    }
  } catch (...) {
    failure_ = std::current_exception();
    failed_ = true;
  }
  unended_ = 0;
  report_ends();
}

void CheckingWorker::check_batch(const WorkerBatch& batch) {
  ++row_check_.outcome().batches;
  for (const auto& opened : batch.opened())
    row_check_.open(opened.stream, opened.name, opened.options);
  if (fetched_) {
    fetched_->fetch(worker_, batch);
    row_check_.outcome().damaged += fetched_->damaged();
  }
  for (std::uint32_t i = 0; i < batch.framed().size(); ++i)
    row_check_.check(batch.framed()[i], fetched_ ? fetched_->row(i) : batch.row(i), batch.taken());
  for (const auto& mark : batch.marks()) row_check_.check_mark(mark, batch.taken());
}

void CheckingWorker::send_messages(const WorkerBatch& batch) {
  static const Answer message{Answer::Kind::text, std::string(64, 'm')};
  WorkerOutcome& outcome = row_check_.outcome();
  for (const auto& row : batch.framed())
    for (std::uint32_t i = 0; i < messages_; ++i)
      ++(worker_.send(row.stream, message) ? outcome.messages : outcome.unsent);
}

}  // namespace millrace::load
