// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "batcher/batcher.h"

namespace millrace::test {

// Throws a std::logic_error that names the rule, unless it holds.
void demand(bool holds, const char* rule);

// The required behaviour of a lane in the simplest form: every query checks every waiting row, and
// no list is kept in order. It does not choose the rows of a batch but checks a choice: throws a
// std::logic_error that names the rule that a batch or an answer breaks.
class LaneModel {
 public:
  explicit LaneModel(BatchRule rule) : rule_(std::move(rule)) {}

  // The slot that a stream must get.
  std::optional<Slot> open(StreamId id);
  void add(StreamId id, const ReadyRow& row);
  // Removes the stream. Returns its waiting rows.
  std::vector<ReadyRow> remove(StreamId id);
  void drain() { draining_ = true; }

  std::optional<Batcher::Choice> next(Time now, bool idle) const;
  Time deadline(bool idle) const;
  std::size_t waiting() const;

  // Checks the batch that a batcher has closed now.
  void judge(const Batch& batch, const Batcher::Choice& choice, Time now);

 private:
  struct Stream {
    Slot slot{};
    Time before = Time::min();
    bool ended = false;
    std::deque<ReadyRow> rows;
  };

  static Time age(const Stream& stream);
  static bool tried_alone(const Stream& stream);
  bool has_suspect() const;
  Time deadline_of_others() const;
  std::optional<Trigger> trigger_of_others(Time now) const;
  void judge_suspect(const Batch& batch, Time now);
  std::size_t takeable_framed() const;
  std::size_t takeable_marks() const;
  void judge_framed(const Batch& batch, Time now);
  void judge_marks(const Batch& batch, Time now);
  void judge_width(const Batch& batch) const;
  void take(const BatchRow& row, Time now);

  BatchRule rule_;
  std::map<StreamId, Stream> streams_;
  bool draining_ = false;
  bool others_are_next_ = true;
};

}  // namespace millrace::test
