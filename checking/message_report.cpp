// SPDX-License-Identifier: Apache-2.0
#include "checking/message_report.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "checking/answer_text.h"
#include "checking/plan/answer_edits.h"

namespace millrace::checking {
namespace {

std::size_t most_edits(const std::vector<Answer>& messages, double tolerance) {
  std::size_t characters = 0;
  if (tolerance > 0)
    for (const Answer& message : messages) characters += text_length(message);
  return static_cast<std::size_t>(tolerance * static_cast<double>(characters));
}

std::string message_at(const std::vector<Answer>& messages, std::size_t number) {
  return number < messages.size() ? text_of(messages[number]) : "no message";
}

}  // namespace

void MessageReport::add(StageMessages messages) {
  const std::size_t stage = added_++;
  if (stage == 0) {
    expected_ = std::move(messages);
    return;
  }
  if (depends_on_time_ || first_) return;
  first_ = compare(messages);
  if (!first_) return;
  first_->stage = stage;
  depends_on_time_ = stage == 1;
  if (depends_on_time_) first_.reset();
}

std::optional<MessageReport::Place> MessageReport::compare(const StageMessages& messages) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::size_t stream = i % streams_.size();
    if (streams_[stream].runs().size() > 1) continue;
    const auto &alone = expected_[stream], &here = messages[i];
    std::size_t left = most_edits(alone, tolerance_);
    for (std::size_t at = 0; at < std::max(alone.size(), here.size()); ++at) {
      const bool both = at < std::min(alone.size(), here.size());
      const auto found = both ? answer_difference(alone[at], here[at], tolerance_, left)
                              : std::optional<AnswerDifference>();
      if (!found) return Place{0, stream, at, message_at(alone, at), message_at(here, at)};
      left -= found->edits;
    }
  }
  return std::nullopt;
}

std::vector<const Answer*> MessageReport::compared_messages() const {
  std::vector<const Answer*> all;
  for (std::size_t i = 0; i < expected_.size() && !depends_on_time_; ++i)
    if (streams_[i].runs().size() == 1)
      for (const Answer& message : expected_[i]) all.push_back(&message);
  return all;
}

std::size_t MessageReport::distinct() const {
  std::set<std::pair<Answer::Kind, std::string_view>> all;
  for (const Answer* message : compared_messages()) all.emplace(message->kind, message->data);
  return all.size();
}

std::string MessageReport::difference() const {
  const auto [alone, here] = shown(first_->alone, first_->here);
  return "The first message of the worker that differs is number " +
         std::to_string(first_->number) + " to stream \"" + streams_[first_->stream].name() +
         "\".\n  alone             " + alone + "\n  here              " + here +
         "\n  stage             " + std::string(stages_[first_->stage].name) +
         "\nA stream gets the messages of another one, or messages depend on the batch or on the "
         "time.\n";
}

}  // namespace millrace::checking
