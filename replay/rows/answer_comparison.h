// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/answer.h"
#include "chunker/row.h"
#include "schemas/slices/slice.h"

namespace millrace {

// A row whose answer differs from the recorded one.
struct AnswerDifference {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;  // frames of its body
  Answer recorded{};                 // kind none: no answer was recorded
  Answer replayed{};                 // kind none: the row got no answer
};

// Compares the answers to the rows of one stream with the recorded ones, and finds the first row
// where they differ. Both arrive in the order of the rows, at any time. Two answers are equal if
// they are the same JSON text, the same bytes, or both errors; a text equals the JSON string with
// this text. Pure. Confined to one thread.
class AnswerComparison {
 public:
  // The answer to a row was recorded. A recording has no entry for a row without an answer.
  void recorded(const recording::RecordedAnswer& answer);
  // A row is done, with an answer or without one.
  void replayed(const Row& row, const Answer& answer);
  // From here on rows, or recorded answers, are missing in the recording. Only rows up to that of
  // the last answer so far are compared.
  void cut();
  // There are no more recorded answers, or no more rows.
  void recorded_all();
  void replayed_all();

  // The first row that differs. Final after both ends.
  const std::optional<AnswerDifference>& difference() const { return difference_; }
  // True if there was any recorded answer. Without one, nothing was compared.
  bool has_recorded() const { return has_recorded_; }
  bool is_cut() const { return limit_.has_value(); }

 private:
  struct Recorded {
    std::uint64_t seq = 0;
    Answer answer{};
  };
  // An answer follows its row within the rows that a stream can have outstanding. This is far above
  // it: a row with more rows after it has no recorded answer. Bounds the memory.
  static constexpr std::size_t most_waiting = 16'384;

  void compare();
  bool over() const { return difference_.has_value(); }

  std::deque<Recorded> recorded_;
  std::deque<AnswerDifference> replayed_;  // rows that wait for their recorded answer
  std::uint64_t next_recorded_ = 0;        // after the row of the last recorded answer
  std::optional<std::uint64_t> limit_;     // the number of the first row that is not compared
  bool has_recorded_ = false;
  bool recorded_all_ = false;
  bool replayed_all_ = false;
  std::optional<AnswerDifference> difference_;
};

}  // namespace millrace
