// SPDX-License-Identifier: Apache-2.0
#include "training/filling/epochs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <utility>

namespace millrace::training {

namespace {

// Far more requests than fillers that can share the epochs.
constexpr std::size_t most_requests = 1 << 16;

constexpr std::size_t most_kept = 2;  // the epoch that is read, and the next one

constexpr Duration poll_interval = std::chrono::milliseconds(100);

// stop() ends a distribution.
struct Stopped {};

}  // namespace

Epochs::Epochs(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

Epochs::~Epochs() { stop(); }

void Epochs::start() {
  if (!thread_.empty()) return;
  requests_ = std::make_unique<Queue<Request>>(most_requests);
  thread_.start("millrace-epochs", [this] { run(); });
  runs_ = true;
}

bool Epochs::stop_until(Time deadline) {
  if (thread_.empty()) return true;
  requests_->close();
  if (!thread_.join_until(deadline)) return false;
  // Their promises are destroyed. The queue stays: another thread may be within get().
  std::vector<Request> dropped;
  requests_->drain(dropped);
  runs_ = false;
  return true;
}

Epochs::Distributed Epochs::get(std::uint64_t epoch, const Poll& poll) {
  if (!runs_) return find_or_make(epoch, poll);
  // The exception is moved, so that the caller alone owns it.
  struct Answer {
    Distributed distributed;
    std::exception_ptr error;
  };
  // A request that is dropped destroys the promise.
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  ask(epoch, [promise = std::move(promise)](Distributed distributed, std::exception_ptr error) {
    promise->set_value({std::move(distributed), std::move(error)});
  });
  while (poll && future.wait_for(poll_interval) != std::future_status::ready) poll();
  Answer answer = future.get();
  if (answer.error) std::rethrow_exception(std::move(answer.error));
  return std::move(answer.distributed);
}

void Epochs::ask(std::uint64_t epoch, Then then) {
  (void)requests_->try_push({.epoch = epoch, .then = std::move(then)});
}

void Epochs::prepare(std::uint64_t epoch) {
  if (runs_) ask(epoch, nullptr);
}

void Epochs::run() {
  const Poll poll = [this] {
    if (requests_->closed()) throw Stopped();
  };
  while (const auto request = requests_->pop_until(Time::max())) {
    if (requests_->closed()) return;
    Distributed epoch;
    std::exception_ptr error;
    try {
      epoch = find_or_make(request->epoch, poll);
    } catch (const Stopped&) {
      return;
    } catch (...) {  // get() and ask() of this epoch fail in the same way
      error = std::current_exception();
    }
    if (request->then) request->then(std::move(epoch), std::move(error));
  }
}

Epochs::Distributed Epochs::find_or_make(std::uint64_t epoch, const Poll& poll) {
  std::erase_if(known_, [](const Known& known) { return known.used.expired(); });
  Distributed found;
  const auto at = std::ranges::find(known_, epoch, &Known::epoch);
  if (at != known_.end()) {
    found = at->used.lock();
    known_.erase(at);
  }
  if (!found) found = plan_->epoch(epoch, poll);
  known_.push_back({.epoch = epoch, .kept = found, .used = found});
  for (std::size_t i = 0; i + most_kept < known_.size(); ++i) known_[i].kept.reset();
  return found;
}

}  // namespace millrace::training
