// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "recording/reader/stream_reader.h"
#include "replay/rows/answer_comparison.h"

namespace millrace {

// The totals of a replay.
struct ReplayTotals {
  std::uint64_t streams = 0;     // that are over
  std::uint64_t failed = 0;      // streams that could not be replayed to their end
  std::uint64_t rows = 0;        // done, if the replay is to workers
  std::uint64_t frames = 0;      // replayed
  std::uint64_t bytes = 0;       // bytes of these frames
  std::uint64_t missing = 0;     // parts of streams that are missing
  std::uint64_t equal = 0;       // streams without a difference
  std::uint64_t different = 0;   // streams with one
  std::uint64_t unanswered = 0;  // streams without recorded answers: not compared
};

// The output of a replay: lines of JSON on `out`, notices and errors on `err`. Notices name streams
// by number: names are chosen by clients. Confined to one thread.
class ReplayOutput {
 public:
  // With `compares`, only differences are printed on `out`. The streams must outlive it.
  ReplayOutput(std::ostream& out, std::ostream& err, bool compares)
      : out_(out), err_(err), compares_(compares) {}

  bool compares() const { return compares_; }
  ReplayTotals& totals() { return totals_; }

  // A line of JSON about a stream: an answer, or a message of the service.
  void print(std::string_view line);
  // Sends the lines that were printed. False: `out` cannot be written.
  bool flush();
  // A notice about the replay, or about a stream.
  void notice(std::string_view text);
  void notice(std::uint64_t stream, std::string_view text);
  // The stream could not be replayed to its end.
  void failed(std::uint64_t stream, std::string_view why);

  // The stream is over: names its missing parts, and prints its first difference. `comparison` may
  // be null.
  void over(std::uint64_t stream, std::string_view name,
            std::span<const recording::MissingPart> missing, const AnswerComparison* comparison);
  // The totals, at the end of the replay, in one or two lines. `selected`: streams to replay.
  void summary(double seconds, std::uint64_t selected);
  // True if every stream was replayed to its end, and nothing differs.
  bool good() const;

 private:
  void print(std::uint64_t stream, std::string_view name, const AnswerDifference& difference);

  std::ostream& out_;
  std::ostream& err_;
  const bool compares_;
  bool written_ = false;  // lines since the last flush
  ReplayTotals totals_;
};

}  // namespace millrace
