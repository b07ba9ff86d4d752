// SPDX-License-Identifier: Apache-2.0
#include "load/row_watch.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::load {

namespace {

// Of the pipeline, as Welcome says it. Throws std::runtime_error for one of a later version.
ChunkRule rule_of(const Worker& worker) {
  boost::json::error_code failed;
  const auto said = boost::json::parse(worker.chunk(), failed);
  if (failed || !said.is_object())
    throw std::runtime_error("the pipeline's chunk rule cannot be read: " + worker.chunk());
  RuleKeys keys;
  for (const auto& [key, value] : said.get_object())
    keys.emplace_back(
        key, value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value));
  const auto rule = parse_rule(keys, {.rate = worker.rate(), .features = worker.frames().features});
  if (!rule)
    throw std::runtime_error("the pipeline's chunk rule is not known: " + rule.error().message);
  return *rule;
}

}  // namespace

RowWatch::RowWatch(Worker worker, const RunFacts& run)
    : worker_(std::move(worker)),
      answers_(run.answered),
      check_(run, rule_of(worker_), worker_.frames()) {
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
