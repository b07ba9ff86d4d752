// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_output.h"

#include <iomanip>
#include <ostream>
#include <sstream>
#include <utility>

#include "client/lines/event_lines.h"
#include "schemas/json_text.h"

namespace millrace {
namespace {

void append(std::string& line, std::string_view key, std::uint64_t value) {
  append_number(line.append(",\"").append(key).append("\":"), value);
}

void append(std::string& line, std::string_view key, const Answer& answer) {
  line.append(",\"").append(key).append("\":");
  if (answer.kind == Answer::Kind::none) {
    line += "null";
    return;
  }
  append_answer(line += '{', answer);
  line += '}';
}

std::string counted(std::uint64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace

void ReplayOutput::print(std::string_view line) {
  out_ << line << '\n';
  written_ = true;
}

bool ReplayOutput::flush() {
  if (std::exchange(written_, false)) out_.flush();
  return bool(out_);
}

void ReplayOutput::notice(std::string_view text) {
  err_ << "millrace replay: " << text << std::endl;
}

void ReplayOutput::notice(std::uint64_t stream, std::string_view text) {
  notice("stream " + std::to_string(stream) + ": " + std::string(text));
}

void ReplayOutput::failed(std::uint64_t stream, std::string_view why) {
  ++totals_.failed;
  notice(stream, why);
}

void ReplayOutput::over(std::uint64_t stream, std::string_view name,
                        std::span<const recording::MissingPart> missing,
                        const AnswerComparison* comparison) {
  ++totals_.streams;
  totals_.missing += missing.size();
  for (const recording::MissingPart& part : missing)
    notice(stream, "positions " + std::to_string(part.begin) + " to " + std::to_string(part.end) +
                       " are missing (" + counted(part.events, "event") + "): " + part.why);
  if (!comparison) return;
  if (!comparison->has_recorded()) {
    ++totals_.unanswered;
    return notice(stream, "has no recorded answers");
  }
  if (comparison->is_cut())
    notice(stream,
           "its answers are compared up to the first missing part, or to where it was opened anew");
  ++(comparison->difference() ? totals_.different : totals_.equal);
  if (comparison->difference()) print(stream, name, *comparison->difference());
}

void ReplayOutput::print(std::uint64_t stream, std::string_view name,
                         const AnswerDifference& difference) {
  std::string line = R"({"number":)";
  append_number(line, stream);
  append_string(line += ",\"stream\":", name);
  line += R"(,"type":"difference")";
  append(line, "seq", difference.seq);
  append(line, "begin", difference.begin);
  append(line, "end", difference.end);
  append(line, "recorded", difference.recorded);
  append(line, "replayed", difference.replayed);
  print(line += '}');
}

void ReplayOutput::summary(double seconds, std::uint64_t selected) {
  std::ostringstream text;
  text << totals_.streams << " of " << counted(selected, "stream");
  if (totals_.rows > 0) text << ", " << counted(totals_.rows, "row");
  text << ", " << counted(totals_.frames, "frame") << " in " << std::fixed << std::setprecision(1)
       << seconds << " s";
  if (totals_.failed > 0) text << "; " << totals_.failed << " failed";
  if (totals_.missing > 0) text << "; missing parts: " << totals_.missing;
  notice(text.str());
  if (!compares_) return;
  notice(std::to_string(totals_.equal) + " without a difference, " +
         std::to_string(totals_.different) + " with one, " + std::to_string(totals_.unanswered) +
         " without recorded answers");
}

bool ReplayOutput::good() const {
  const bool compared = !compares_ || totals_.equal > 0;
  return totals_.failed == 0 && totals_.different == 0 && compared;
}

}  // namespace millrace
