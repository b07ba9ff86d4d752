// SPDX-License-Identifier: Apache-2.0
#include "checking/check_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/enum_names.h"
#include "checking/answer_text.h"
#include "checking/plan/answer_edits.h"
#include "schemas/json_text.h"

namespace millrace::checking {
namespace {

constexpr std::size_t most_listed = 8;      // numbers of rows
constexpr std::size_t most_neighbours = 4;  // rows in a line
constexpr std::string_view first_column = "stage";
// Numbers that depend on the order of additions differ by no more than the last one.
constexpr std::array<std::string_view, 4> small_tolerances{"1e-6", "1e-5", "1e-4", "1e-3"};

// Row number `index` of the batch: rows with frames, then marker rows.
const PlannedRow& row_at(const PlannedBatch& batch, std::uint32_t index) {
  const std::size_t framed = batch.framed.size();
  return index < framed ? batch.framed[index] : batch.marks[index - framed];
}

std::uint32_t rows_of(const PlannedBatch& batch) {
  return static_cast<std::uint32_t>(batch.framed.size() + batch.marks.size());
}

std::string quoted(const std::string& name) {
  std::string text;
  append_string(text, name);
  return text;
}

std::string cell(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string counted_rows(std::size_t count, const std::string& kind) {
  return std::to_string(count) + " " + kind + (count == 1 ? "row" : "rows");
}

}  // namespace

CheckReport::CheckReport(std::span<const CheckedStream> streams, std::span<const Stage> stages,
                         double rate, double tolerance)
    : streams_(streams),
      stages_(stages),
      rate_(rate),
      tolerance_(tolerance),
      messages_(streams, stages, tolerance) {}

bool CheckReport::is_equal(const PlannedRow& row, const Played& played,
                           std::vector<std::size_t>& edits) {
  const std::size_t index = answers_index(row, streams_.size());
  std::size_t& left = edits[index];
  const auto found = answer_difference(played_.front().answers[row.stream][row.row],
                                       played.answers[index][row.row], tolerance_, left);
  if (!found) return false;
  left -= found->edits;
  largest_numbers_ = std::max(largest_numbers_, found->numbers);
  return true;
}

void CheckReport::add(PlayedStage added) {
  messages_.add(std::move(added.messages));
  const std::size_t stage = played_.size();
  Played& played = played_.emplace_back();
  played.answers = std::move(added.answers);
  played.different.resize(played.answers.size());
  if (stage == 0) return count_characters();
  std::vector<std::size_t> edits;
  for (std::size_t i = 0; i < played.answers.size(); ++i)
    edits.push_back(most_edits(i % streams_.size()));
  const auto& batches = stages_[stage].batches;
  for (std::size_t batch = 0; batch < batches.size(); ++batch)
    for (std::uint32_t i = 0; i < rows_of(batches[batch]); ++i) {
      const PlannedRow& row = row_at(batches[batch], i);
      if (is_equal(row, played, edits)) continue;
      ++played.count;
      played.different[answers_index(row, streams_.size())].insert(row.row);
      if (!first_) first_ = {stage, batch, i};
    }
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const std::size_t stream = i % streams_.size(), used = most_edits(stream) - edits[i];
    if (used > 0)
      largest_texts_ = std::max(
          largest_texts_, static_cast<double>(used) / static_cast<double>(characters_[stream]));
  }
}

void CheckReport::count_characters() {
  for (const auto& stream : played_.front().answers) {
    std::size_t& characters = characters_.emplace_back();
    if (tolerance_ > 0)
      for (const Answer& answer : stream) characters += text_length(answer);
  }
}

std::size_t CheckReport::most_edits(std::size_t stream) const {
  return static_cast<std::size_t>(tolerance_ * static_cast<double>(characters_[stream]));
}

std::size_t CheckReport::answered() const {
  std::size_t count = 0;
  for (const auto& stream : played_.front().answers)
    count += static_cast<std::size_t>(std::ranges::count_if(
        stream, [](const Answer& answer) { return answer.kind != Answer::Kind::none; }));
  return count;
}

std::size_t CheckReport::failed() const {
  std::size_t count = 0;
  for (const auto& stream : played_.front().answers)
    count +=
        static_cast<std::size_t>(std::ranges::count(stream, Answer::Kind::error, &Answer::kind));
  return count;
}

std::string CheckReport::first_error() const {
  for (const auto& stream : played_.front().answers)
    if (const auto found = std::ranges::find(stream, Answer::Kind::error, &Answer::kind);
        found != stream.end())
      return shown(found->data);
  return {};
}

std::size_t CheckReport::distinct() const {
  std::set<std::tuple<Answer::Kind, std::string_view, bool>> all;
  for (const auto& stream : played_.front().answers)
    for (const Answer& answer : stream)
      if (answer != Answer()) all.emplace(answer.kind, answer.data, answer.endpoint);
  return all.size();
}

std::string CheckReport::table() const {
  std::size_t width = first_column.size();
  for (const Stage& stage : stages_) width = std::max(width, stage.name.size());
  const auto line = [&](std::string_view name, const std::string& batches, const std::string& rows,
                        const std::string& different) {
    return std::string(name) + std::string(width - name.size(), ' ') + cell(batches, 10) +
           cell(rows, 10) + (different.empty() ? "" : cell(different, 12)) + '\n';
  };
  std::string table = line(first_column, "batches", "rows", "different");
  for (std::size_t i = 0; i < played_.size(); ++i) {
    std::size_t rows = 0;
    for (const PlannedBatch& batch : stages_[i].batches) rows += rows_of(batch);
    table += line(stages_[i].name, std::to_string(stages_[i].batches.size()), std::to_string(rows),
                  i == 0 ? "" : std::to_string(played_[i].count));
  }
  return table;
}

std::string CheckReport::row_text(const PlannedRow& row) const {
  return quoted(streams_[row.stream].name()) + " row " + std::to_string(row.row);
}

std::string CheckReport::place_text(const Place& at) const {
  const PlannedRow& row = row_at(batch_of(at), at.index);
  const Row& cut = streams_[row.stream].rows()[row.row].row;
  char times[64];
  std::snprintf(times, sizeof times, "%.3f s to %.3f s", static_cast<double>(cut.begin) / rate_,
                static_cast<double>(cut.end()) / rate_);
  std::string text =
      "stream " + row_text(row) + ", " + (cut.has_frames() ? std::string(times) : "a marker row");
  if (cut.flags != 0) {
    std::string flags;
    append_flags(flags, cut.flags);
    std::erase_if(flags, [](char each) { return each == '[' || each == ']' || each == '"'; });
    text += ", flags " + flags;
  }
  if (cut.reason != ResetReason::none) text += ", reason " + std::string(name_of(cut.reason));
  return text;
}

// The stream that used the slot last, at this worker since it was started.
std::string CheckReport::slot_text(const Place& at) const {
  const PlannedBatch& here = batch_of(at);
  const PlannedRow& row = row_at(here, at.index);
  std::optional<PlannedRow> before;
  for (std::size_t stage = 0; stage <= at.stage; ++stage)
    for (std::size_t i = 0; i < stages_[stage].batches.size(); ++i) {
      if (stage == at.stage && i == at.batch) break;
      const PlannedBatch& batch = stages_[stage].batches[i];
      if (batch.worker != here.worker) continue;
      if (batch.fresh) before.reset();
      for (std::uint32_t j = 0; j < rows_of(batch); ++j)
        if (const PlannedRow& other = row_at(batch, j);
            other.slot == row.slot && other.id != row.id)
          before = other;
    }
  return std::to_string(row.slot) +
         (before ? ", which had " + row_text(*before) + " before" : ", which was not used before");
}

std::string CheckReport::neighbours_text(const Place& at) const {
  const PlannedBatch& batch = batch_of(at);
  std::string text = counted_rows(batch.framed.size(), "");
  if (at.index < batch.framed.size() && batch.framed.size() > 1)
    text += ", this is number " + std::to_string(at.index);
  if (batch.padding() > 0) text += "; " + counted_rows(batch.padding(), "padding ");
  if (!batch.marks.empty()) text += "; " + counted_rows(batch.marks.size(), "marker ");
  std::size_t listed = 0;
  for (std::uint32_t i = 0; i < rows_of(batch) && listed <= most_neighbours; ++i) {
    if (i == at.index) continue;
    text += listed++ == 0 ? "; beside " : ", ";
    text += listed > most_neighbours ? "…" : row_text(row_at(batch, i));
  }
  return text;
}

std::string CheckReport::worker_text(const Place& at) const {
  const PlannedRow& row = row_at(batch_of(at), at.index);
  const std::uint32_t worker = batch_of(at).worker;
  std::string text = worker == 0 ? "the first one" : "the second one";
  for (std::size_t i = at.batch; i-- > 0;) {
    const PlannedBatch& batch = stages_[at.stage].batches[i];
    for (std::uint32_t j = 0; j < rows_of(batch); ++j)
      if (const PlannedRow& other = row_at(batch, j);
          answers_index(other, streams_.size()) == answers_index(row, streams_.size()) &&
          batch.worker != worker)
        return text + "; " + row_text(row_at(batch, j)) + " was at the other one";
  }
  return text;
}

std::string CheckReport::rows_text(const Place& at) const {
  const PlannedRow& row = row_at(batch_of(at), at.index);
  const auto& rows = played_[at.stage].different[answers_index(row, streams_.size())];
  std::string text;
  std::size_t listed = 0;
  for (const std::uint32_t each : rows)
    if (++listed <= most_listed) text += (listed > 1 ? " " : "") + std::to_string(each);
  if (listed > most_listed) text += " …";
  return text + ", " + std::to_string(rows.size()) + " of " +
         std::to_string(streams_[row.stream].rows().size());
}

std::string CheckReport::tensor_text(const Place& at) const {
  const auto text = [](const PlannedBatch* batch) {
    if (batch == nullptr || batch->rows == 0) return std::string("none");
    return counted_rows(batch->rows, "") + ", width " + std::to_string(batch->width);
  };
  const PlannedRow& row = row_at(batch_of(at), at.index);
  const PlannedBatch* alone = nullptr;
  for (const PlannedBatch& batch : stages_.front().batches)
    for (const PlannedRow& other : batch.framed)
      if (other.stream == row.stream && other.row == row.row) alone = &batch;
  return text(&batch_of(at)) + "; alone " + text(alone);
}

// Those that the rows of the batch carry.
std::string CheckReport::messages_text(const Place& at) const {
  const PlannedBatch& batch = batch_of(at);
  std::string text;
  std::size_t listed = 0;
  for (std::uint32_t i = 0; i < rows_of(batch); ++i) {
    const PlannedRow& row = row_at(batch, i);
    for (const StreamPost& message : streams_[row.stream].rows()[row.row].messages) {
      if (++listed > most_neighbours) return text + ", …";
      text += (listed > 1 ? ", " : "") + std::string(message.set ? "set " : "") +
              shown(message.text) + " to " + row_text(row);
    }
  }
  return text;
}

bool CheckReport::differs_within(double tolerance) const {
  for (const Played& played : played_)
    for (std::size_t i = 0; i < played.different.size(); ++i)
      for (const std::uint32_t row : played.different[i])
        if (!answer_difference(played_.front().answers[i % streams_.size()][row],
                               played.answers[i][row], tolerance, 0))
          return true;
  return false;
}

std::optional<std::string> CheckReport::sufficient_tolerance() const {
  if (batch_of(*first_).rows <= 1) return std::nullopt;  // the batch is that of the stream alone
  for (const std::string_view text : small_tolerances) {
    const double tolerance = std::strtod(text.data(), nullptr);
    if (tolerance > tolerance_ && !differs_within(tolerance)) return std::string(text);
  }
  return std::nullopt;
}

std::string CheckReport::margin() const {
  std::string text;
  char number[64];
  if (largest_numbers_ > 0) {
    std::snprintf(number, sizeof number, "%.2g", largest_numbers_);
    text += "numbers by up to " + std::string(number);
  }
  if (largest_texts_ > 0) {
    std::snprintf(number, sizeof number, "%.2g", largest_texts_);
    text += (text.empty() ? "" : ", ") +
            ("texts by up to " + std::string(number) + " of the characters of a stream");
  }
  return text.empty() ? text : "Differences: " + text + ".\n";
}

std::string CheckReport::difference() const {
  if (!first_) return messages_.difference();
  const Place& at = *first_;
  const PlannedRow& row = row_at(batch_of(at), at.index);
  const std::string alone = text_of(played_.front().answers[row.stream][row.row]);
  const std::string other =
      text_of(played_[at.stage].answers[answers_index(row, streams_.size())][row.row]);
  const auto [shown_alone, shown_here] = shown(alone, other);
  std::string text = "The first answer that differs is that of " + place_text(at) + ".\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    text += "  " + name + std::string(18 - name.size(), ' ') + value + '\n';
  };
  line("alone", shown_alone);
  line("here", shown_here);
  line("stage", std::string(stages_[at.stage].name));
  line("batch", neighbours_text(at));
  line("tensor", tensor_text(at));
  if (const std::string messages = messages_text(at); !messages.empty()) line("messages", messages);
  line("slot", slot_text(at));
  line("worker", worker_text(at));
  line("rows that differ", rows_text(at));
  if (const auto tolerance = sufficient_tolerance())
    return text + "The numbers depend a little on the batch: try --tolerance " + *tolerance + ".\n";
  return text + std::string(stages_[at.stage].finding) + '\n';
}

}  // namespace millrace::checking
