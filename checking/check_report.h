// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/answer.h"
#include "checking/message_report.h"
#include "checking/plan/checked_stream.h"
#include "checking/plan/stage.h"

namespace millrace::checking {

// The answers of a stage: those of the streams, of their second copies, and so on; then by row.
using StageAnswers = std::vector<std::vector<Answer>>;

struct PlayedStage {
  StageAnswers answers;
  StageMessages messages;
};

// Index in the answers of a stage.
inline std::size_t answers_index(const PlannedRow& row, std::size_t streams) {
  return row.copy * streams + row.stream;
}

// Compares the answers and messages of the stages with those of the first one, and says what
// differs. Confined to one thread.
class CheckReport {
 public:
  // `streams` and `stages` must outlive it. `rate`: frames per second. `tolerance` is that of
  // answer_difference(). The texts of a stream may differ by this part of all their characters: in
  // a segment of few words, each of them counts much.
  CheckReport(std::span<const CheckedStream> streams, std::span<const Stage> stages, double rate,
              double tolerance);

  // The next stage.
  void add(PlayedStage stage);

  bool empty() const { return played_.empty(); }
  // True if an answer or a message of a stage so far differs.
  bool differs() const { return first_ || messages_.differs(); }
  const MessageReport& messages() const { return messages_; }
  // The number of rows of the first stage with an answer; the number of those whose answer is an
  // error, and the text of the first error. Require: the first stage was added.
  std::size_t answered() const;
  std::size_t failed() const;
  std::string first_error() const;
  // The number of distinct answers in the first stage.
  std::size_t distinct() const;

  // A line for each stage, with numbers of batches, of rows, and of rows whose answer differs.
  std::string table() const;
  // The largest differences within the tolerance: one line, or empty if there are none.
  std::string margin() const;
  // The first row that differs, both answers, what was different about its batch, and what that
  // means; otherwise the first message. Requires: differs().
  std::string difference() const;

 private:
  // A row that differs.
  struct Place {
    std::size_t stage = 0, batch = 0;
    std::uint32_t index = 0;  // in the batch: rows with frames, then marker rows
  };
  struct Played {
    StageAnswers answers;
    std::vector<std::set<std::uint32_t>> different;  // rows, as the answers
    std::size_t count = 0;                           // the number of these rows
  };

  const PlannedBatch& batch_of(const Place& at) const {
    return stages_[at.stage].batches[at.batch];
  }
  bool is_equal(const PlannedRow& row, const Played& played, std::vector<std::size_t>& edits);
  void count_characters();
  std::size_t most_edits(std::size_t stream) const;
  std::string place_text(const Place& at) const;
  std::string slot_text(const Place& at) const;
  std::string neighbours_text(const Place& at) const;
  std::string worker_text(const Place& at) const;
  std::string rows_text(const Place& at) const;
  std::string tensor_text(const Place& at) const;
  std::string messages_text(const Place& at) const;
  // The least power of ten that is a tolerance within which nothing differs, if it is small, and
  // if only the batch is a reason.
  std::optional<std::string> sufficient_tolerance() const;
  bool differs_within(double tolerance) const;
  std::string row_text(const PlannedRow& row) const;

  const std::span<const CheckedStream> streams_;
  const std::span<const Stage> stages_;
  const double rate_;
  const double tolerance_;
  std::vector<Played> played_;
  std::vector<std::size_t> characters_;  // the length of the first stage's texts, by stream
  double largest_numbers_ = 0;           // difference within the tolerance
  double largest_texts_ = 0;             // the same, as a part of the characters of a stream
  std::optional<Place> first_;
  MessageReport messages_;
};

}  // namespace millrace::checking
