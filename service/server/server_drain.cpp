// SPDX-License-Identifier: Apache-2.0
// How the service stops (docs/threading.md).
#include <future>
#include <string>
#include <utility>

#include "service/server/server.h"

namespace millrace {

namespace {

// After a cut-off: how long connections may take to notice, and how long workers to be sent their
// Bye.
constexpr auto cut_off_patience = std::chrono::milliseconds(250);
constexpr auto bye_patience = std::chrono::milliseconds(100);
// After a drain: how long threads may at least take to end.
constexpr auto threads_patience = std::chrono::seconds(1);

// What is posted to the context before has then been done.
std::future<void> run_on(net::io_context& context, std::function<void()> work) {
  auto done = std::make_shared<std::promise<void>>();
  net::post(context, [done, work = std::move(work)] {
    work();
    done->set_value();
  });
  return done->get_future();
}

}  // namespace

// CUDA is not tried again in this process. The device's streams go to workers elsewhere.
void Server::end_for(std::size_t device, const DeviceLost& why) {
  LimitOptions at_once = options_.limits;
  at_once.linger = at_once.notice = {};
  begin_drain(at_once);
  device_watch_.lost(device, why);
}

void Server::begin_drain(const LimitOptions& limits) {
  if (std::exchange(draining_, true)) return;
  stats_.draining.set(1);
  undrained_ = threads_.size();
  times_ = drain_times(Clock::now(), limits);
  step_.cancel();
}

void Server::cut_off(const char* why) {
  why_cut_off_ = why;
  times_.linger_ends = times_.notice_ends = times_.cuts = Time::min();
  step_.cancel();
}

// From begin_drain() on, the order of the data: no new streams, streams end, batches close, results
// are sent; then the workers are dismissed. If an allocation fails in it, it is started again and
// continues with the first step that is not done.
Task<> Server::drain() {
  const auto until = [this](Time due) {
    step_.expires_at(due);
    return step_.async_wait(no_throw);
  };
  while (!draining_) co_await until(Time::max());
  while (Clock::now() < times_.linger_ends) {
    enter("linger");
    co_await until(times_.linger_ends);
  }
  // A cut-off in between: before the first stream could end well.
  if (times_.cuts == Time::min()) post_cut_offs();
  post_drains();
  while (undrained_ > 0 && Clock::now() < times_.notice_ends) {
    enter("notice");
    co_await until(times_.notice_ends);
  }
  enter("end");
  post_hub_drains();
  while (undrained_ > 0 && Clock::now() < times_.cuts) co_await until(times_.cuts);
  if (undrained_ > 0) {
    post_cut_offs();
    while (undrained_ > 0 && Clock::now() < times_.ends) co_await until(times_.ends);
    note_cut_off();
  }
  finish();
}

void Server::enter(std::string_view phase) {
  if (std::exchange(phase_, phase) == phase) return;
  supervisor_.stopping("stopping: " + std::string(phase));
  log_.info("drain phase", {{"phase", phase}});
}

void Server::post_drains() {
  for (; told_threads_ < threads_.size(); ++told_threads_) {
    IoThread& io = *threads_[told_threads_];
    io.post([this, &io, notice_ends = times_.notice_ends] {
      io.drain(notice_ends, [this] {
        net::post(main_, [this] {
          if (--undrained_ == 0) step_.cancel();
        });
      });
    });
  }
}

void Server::post_hub_drains() {
  for (; told_hubs_ < pipelines_.size(); ++told_hubs_) {
    Pipeline& pipeline = *pipelines_[told_hubs_];
    net::post(pipeline.home(),
              [&hub = pipeline.hub(), give_up = times_.gives_up] { hub.drain(give_up); });
  }
}

// Connections end at once. Their threads then finish the drain: no session outlives what it uses.
void Server::post_cut_offs() {
  if (cut_threads_ == 0) times_.ends = Clock::now() + cut_off_patience;
  for (; cut_threads_ < threads_.size(); ++cut_threads_) {
    IoThread& io = *threads_[cut_threads_];
    io.post([this, &io] {
      if (io.cut_off()) cut_ = true;
    });
  }
}

void Server::note_cut_off() {
  if (!cut_ && undrained_ == 0) return;
  if (std::exchange(drained_, false))
    log_.warning("drain cut off", {{"why", cut_ ? why_cut_off_ : "an io thread does not answer"}});
}

// Workers are sent Bye before the threads end.
void Server::finish() {
  const Time deadline = std::max(times_.ends, Clock::now() + bye_patience);
  std::vector<std::future<void>> dismissed;
  for (auto& pipeline : pipelines_)
    dismissed.push_back(run_on(pipeline->home(), [&hub = pipeline->hub()] { hub.dismiss(); }));
  for (auto& done : dismissed) done.wait_until(deadline);
  end_limit_.start(std::max<Duration>(times_.ends - Clock::now(), threads_patience));
  main_.stop();
}

}  // namespace millrace
