// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/answer.h"
#include "checking/plan/checked_stream.h"
#include "checking/plan/stage.h"

namespace millrace::checking {

// The messages of the worker to the clients of a stage, as its answers (check_report.h): those of a
// stream in the order in which they came.
using StageMessages = std::vector<std::vector<Answer>>;

// Compares the messages of the stages with those of the first one. A worker may send them at any
// time, also after the answer to the row that caused them. So only those of streams with one run
// are compared, of which nothing follows; and only contents and order. If the first two stages, in
// which each stream is alone, have different ones, they depend on the time: then none are compared.
//
// Confined to one thread.
class MessageReport {
 public:
  // `streams` and `stages` must outlive it. `tolerance`: as CheckReport.
  MessageReport(std::span<const CheckedStream> streams, std::span<const Stage> stages,
                double tolerance)
      : streams_(streams), stages_(stages), tolerance_(tolerance) {}

  // The messages of the next stage.
  void add(StageMessages messages);

  bool differs() const { return first_.has_value(); }
  bool depends_on_time() const { return depends_on_time_; }
  // The number of messages of the first stage that are compared, and of distinct ones among them.
  std::size_t compared() const { return compared_messages().size(); }
  std::size_t distinct() const;
  // The first message that differs. Requires: differs().
  std::string difference() const;

 private:
  struct Place {
    std::size_t stage = 0, stream = 0, number = 0;
    std::string alone, here;
  };

  std::optional<Place> compare(const StageMessages& messages) const;
  std::vector<const Answer*> compared_messages() const;

  const std::span<const CheckedStream> streams_;
  const std::span<const Stage> stages_;
  const double tolerance_;
  StageMessages expected_;
  std::size_t added_ = 0;  // stages
  bool depends_on_time_ = false;
  std::optional<Place> first_;
};

}  // namespace millrace::checking
