// SPDX-License-Identifier: Apache-2.0
// The drain of the service (docs/internals/threading.md).
#include <future>
#include <string>
#include <utility>

#include "service/server/server.h"

namespace millrace {

namespace {

// After a cut-off: limits on the time until all connections have ended, and until Bye has been sent
// to the workers.
constexpr auto cut_off_timeout = std::chrono::milliseconds(250);
constexpr auto bye_timeout = std::chrono::milliseconds(100);
// After a drain: the time that threads may take to end, even if `drain` is over.
constexpr auto threads_timeout = std::chrono::seconds(1);

// Posts `work` to the context. The future is ready when it has run, and all work posted before it.
std::future<void> run_on(net::io_context& context, std::function<void()> work) {
  auto done = std::make_shared<std::promise<void>>();
  net::post(context, [done, work = std::move(work)] {
    work();
    done->set_value();
  });
  return done->get_future();
}

}  // namespace

// The process cannot use CUDA again, so it drains without linger and notice. Until they end,
// streams of the device move to other workers.
void Server::device_failed(std::size_t device, const DeviceLost& why) {
  LimitOptions at_once = options_.limits;
  at_once.linger = at_once.notice = {};
  begin_drain(at_once);
  device_watch_.failed(device, why);
}

void Server::begin_drain(const LimitOptions& limits) {
  if (std::exchange(draining_, true)) return;
  stats_.draining.set(1);
  undrained_ = threads_.size();
  times_ = drain_times(Clock::now(), limits);
  step_.cancel();
}

void Server::cut_off(const char* why) {
  cut_off_reason_ = why;
  times_.linger_ends = times_.notice_ends = times_.cut_off = Time::min();
  step_.cancel();
}

// After begin_drain() it stops the service in the order of the data: no new streams, streams end,
// batches close, results are sent, the recording is sealed; then workers receive Bye. If an
// allocation fails, it is started again and continues with the first step that is not done.
Task<> Server::drain() {
  const auto until = [this](Time due) {
    step_.expires_at(due);
    return step_.async_wait(no_throw);
  };
  while (!draining_) co_await until(Time::max());
  while (Clock::now() < times_.linger_ends) {
    enter_phase("linger");
    co_await until(times_.linger_ends);
  }
  // A second signal during linger: cut before any stream can end normally.
  if (times_.cut_off == Time::min()) post_cut_offs();
  post_drains();
  while (undrained_ > 0 && Clock::now() < times_.notice_ends) {
    enter_phase("notice");
    co_await until(times_.notice_ends);
  }
  enter_phase("end");
  post_hub_drains();
  while (undrained_ > 0 && Clock::now() < times_.cut_off) co_await until(times_.cut_off);
  if (undrained_ > 0) {
    post_cut_offs();
    while (undrained_ > 0 && Clock::now() < times_.exit) co_await until(times_.exit);
    report_cut_off();
  }
  if (recording_ && undrained_ == 0 && Clock::now() < seal_deadline()) {
    enter_phase("seal");
    post_hand_overs();
    while (!sealed_ && Clock::now() < seal_deadline()) co_await until(seal_deadline());
  }
  if (!sealed_) log_.warning("recording not sealed", {{"why", cut_off_reason_}});
  finish();
}

// After a second signal, the last file is left as after a kill.
Time Server::seal_deadline() const {
  return times_.cut_off == Time::min() ? Time::min() : std::max(times_.cut_off, times_.exit);
}

void Server::enter_phase(std::string_view phase) {
  if (std::exchange(phase_, phase) == phase) return;
  supervisor_.stopping("stopping: " + std::string(phase));
  log_.info("drain phase", {{"phase", phase}});
}

void Server::post_drains() {
  for (; draining_threads_ < threads_.size(); ++draining_threads_) {
    IoThread& io = *threads_[draining_threads_];
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
  for (; draining_hubs_ < pipelines_.size(); ++draining_hubs_) {
    Pipeline& pipeline = *pipelines_[draining_hubs_];
    net::post(pipeline.home(),
              [&hub = pipeline.hub(), ends = times_.worker_wait_ends] { hub.drain(ends); });
  }
}

// Connections end at once. Their threads still finish the drain, so that no session outlives the
// objects that it uses.
void Server::post_cut_offs() {
  if (cut_threads_ == 0) times_.exit = Clock::now() + cut_off_timeout;
  for (; cut_threads_ < threads_.size(); ++cut_threads_) {
    IoThread& io = *threads_[cut_threads_];
    io.post([this, &io] {
      if (io.cut_off()) cut_ = true;
    });
  }
}

void Server::report_cut_off() {
  if (!cut_ && undrained_ == 0) return;
  if (std::exchange(drained_, false))
    log_.warning("drain cut off",
                 {{"why", cut_ ? cut_off_reason_ : "an io thread does not answer"}});
}

// All streams have ended: after their last records the recorder can seal its file.
void Server::post_hand_overs() {
  for (; handing_threads_ < threads_.size(); ++handing_threads_) {
    IoThread& io = *threads_[handing_threads_];
    io.post([this, &io] {
      io.finish_records([this] {
        net::post(main_, [this] {
          if (--unrecorded_ == 0) recording_->finish();
        });
      });
    });
  }
}

// Workers receive Bye before the threads end.
void Server::finish() {
  const Time deadline = std::max(times_.exit, Clock::now() + bye_timeout);
  std::vector<std::future<void>> stopped;
  for (auto& pipeline : pipelines_)
    stopped.push_back(run_on(pipeline->home(), [&hub = pipeline->hub()] { hub.stop(); }));
  for (auto& done : stopped) done.wait_until(deadline);
  end_limit_.start(std::max<Duration>(times_.exit - Clock::now(), threads_timeout));
  main_.stop();
}

}  // namespace millrace
