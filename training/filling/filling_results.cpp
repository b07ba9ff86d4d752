// SPDX-License-Identifier: Apache-2.0
#include "training/filling/filling_results.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::training {

namespace {

constexpr auto nap = std::chrono::milliseconds(1);

}  // namespace

FillingResults::FillingResults(std::size_t capacity, std::size_t several,
                               std::function<void()> on_first)
    : queue_(capacity), several_(several), on_first_(std::move(on_first)) {
  queue_.reserve();  // publish_end() must not allocate
}

void FillingResults::publish(FillingJob& job) {
  const auto pushed = queue_.try_push(&job);
  if (pushed == Queue<FillingJob*>::Pushed::first && on_first_) on_first_();
}

void FillingResults::publish_end() {
  if (has_ended_.exchange(true)) return;
  ended_.kind = FillingJob::Kind::failed;
  ended_.thrown = std::current_exception();
  publish(ended_);
}

FillingJob* FillingResults::find() const {
  const auto found = std::ranges::find_if(
      early_, [this](const FillingJob* job) { return job->number == taken_ || job == &ended_; });
  return found == early_.end() ? nullptr : *found;
}

FillingJob* FillingResults::next_until(Time deadline) {
  for (;;) {
    if (FillingJob* const job = find()) return job;
    auto job = queue_.pop_until(Time::min());
    if (!job && deadline != Time::min()) {
      queue_.wait_for(several_, std::min(deadline, Clock::now() + nap));
      job = queue_.pop_until(deadline);
    }
    if (!job) return nullptr;
    early_.push_back(*job);
  }
}

FillingJob* FillingResults::next(FillingJob& made) {
  early_.push_back(&made);
  return &made;
}

void FillingResults::take(FillingJob& job) {
  ++taken_;
  std::erase(early_, &job);
}

void FillingResults::clear() {
  queue_.drain(early_);
  early_.clear();
  has_ended_ = false;
  taken_ = 0;
}

}  // namespace millrace::training
