// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/thread_team.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace::pocketsphinx {

ThreadTeam::ThreadTeam(std::size_t size) {
  assert(size >= 1);
  for (std::size_t i = 1; i < size; ++i) {
    Inbox& inbox = *inboxes_.emplace_back(std::make_unique<Inbox>(1));
    threads_.emplace_back([&inbox] {
      while (const auto round = inbox.pop_until(Time::max())) {
        (*round)->work();
        (*round)->left.count_down();  // the round may be destroyed right after
      }
    });
  }
}

ThreadTeam::~ThreadTeam() {
  for (auto& inbox : inboxes_) inbox->close();
}

void ThreadTeam::Round::work() {
  // Relaxed: it only gives out numbers; the inbox and the latch order everything else.
  for (auto i = next.fetch_add(1, std::memory_order_relaxed); i < jobs;
       i = next.fetch_add(1, std::memory_order_relaxed))
    job(i);
}

void ThreadTeam::run(std::size_t jobs, const std::function<void(std::size_t)>& job) {
  const std::size_t others = std::min(inboxes_.size(), jobs > 0 ? jobs - 1 : 0);
  Round round{job, jobs, 0, std::latch(static_cast<std::ptrdiff_t>(others))};
  for (std::size_t i = 0; i < others; ++i) {
    Round* address = &round;
    [[maybe_unused]] const auto pushed = inboxes_[i]->try_push(std::move(address));
    assert(pushed == Inbox::Pushed::first);
  }
  round.work();
  round.left.wait();
}

}  // namespace millrace::pocketsphinx
