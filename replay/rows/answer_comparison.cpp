// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/answer_comparison.h"

#include <utility>

#include "schemas/json_text.h"

namespace millrace {
namespace {

std::string json_of(const Answer& answer) {
  if (answer.kind == Answer::Kind::json) return answer.data;
  std::string text;
  append_string(text, answer.data);
  return text;
}

bool is_json(const Answer& answer) {
  return answer.kind == Answer::Kind::json || answer.kind == Answer::Kind::text;
}

bool equal(const Answer& a, const Answer& b) {
  if (a.kind != b.kind) return is_json(a) && is_json(b) && json_of(a) == json_of(b);
  // The reason of an error is for the log only.
  return a.kind == Answer::Kind::error || a.data == b.data;
}

}  // namespace

void AnswerComparison::recorded(const recording::RecordedAnswer& answer) {
  has_recorded_ = true;
  if (limit_ || over()) return;
  next_recorded_ = answer.seq + 1;
  recorded_.push_back({answer.seq, {.kind = answer.kind, .data = std::string(answer.data)}});
  compare();
}

void AnswerComparison::replayed(const Row& row, const Answer& answer) {
  if (over() || (limit_ && row.seq >= *limit_)) return;
  replayed_.push_back({.seq = row.seq,
                       .begin = row.begin,
                       .end = row.end(),
                       .recorded = {},
                       .replayed = {.kind = answer.kind, .data = answer.data}});
  compare();
}

void AnswerComparison::cut() {
  if (!limit_) limit_ = next_recorded_;
  compare();
}

void AnswerComparison::recorded_all() {
  recorded_all_ = true;
  compare();
}

void AnswerComparison::replayed_all() {
  replayed_all_ = true;
  compare();
}

void AnswerComparison::compare() {
  while (!over()) {
    if (replayed_.empty()) {
      // A recorded answer to a row that the replay does not have.
      if (!replayed_all_ || recorded_.empty()) return;
      difference_ = {.seq = recorded_.front().seq, .recorded = recorded_.front().answer};
      break;
    }
    if (limit_ && replayed_.front().seq >= *limit_) return replayed_.clear();
    AnswerDifference& row = replayed_.front();
    const bool waits = recorded_.empty() && !recorded_all_ && replayed_.size() <= most_waiting;
    if (waits) return;
    if (!recorded_.empty() && recorded_.front().seq < row.seq) {
      difference_ = {.seq = recorded_.front().seq, .recorded = recorded_.front().answer};
      break;
    }
    if (!recorded_.empty() && recorded_.front().seq == row.seq) {
      row.recorded = std::move(recorded_.front().answer);
      recorded_.pop_front();
    }
    if (!equal(row.recorded, row.replayed)) difference_ = std::move(row);
    replayed_.pop_front();
  }
  recorded_.clear();
  replayed_.clear();
}

}  // namespace millrace
