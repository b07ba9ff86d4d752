// SPDX-License-Identifier: Apache-2.0
// How the service stops (docs/threading.md).
#include <future>
#include <utility>

#include "service/server.h"

namespace millrace {

namespace {

// After a cut-off: how long connections may take to notice, and how long workers to be sent their
// Bye.
constexpr auto cut_off_patience = std::chrono::milliseconds(250);
constexpr auto bye_patience = std::chrono::milliseconds(100);

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

// CUDA is not tried again in this process. What the streams have goes to workers elsewhere.
void Server::end_for(std::size_t device, const DeviceLost& why) {
  device_watch_.lost(device, why);
  begin_drain();
}

// The order of the data: nobody new, streams end, batches close, results go out; then the workers.
void Server::begin_drain() {
  if (std::exchange(draining_, true)) return;
  stats_.draining.set(1);
  undrained_ = threads_.size();
  for (auto& thread : threads_) {
    IoThread& io = *thread;
    io.post([this, &io] {
      io.drain([this] {
        net::post(main_, [this] {
          if (--undrained_ == 0) finish();
        });
      });
    });
  }
  for (auto& pipeline : pipelines_)
    net::post(pipeline->home(),
              [&hub = pipeline->hub(), give_up = Clock::now() + options_.limits.drain / 2] {
                hub.drain(give_up);
              });
  ends_by_ = Clock::now() + options_.limits.drain;
  grace_.expires_after(time_to_end(options_.limits.drain));
  grace_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) cut_off("the time for it is over");
  });
}

// Connections end at once; their threads then finish the drain, as sessions outlive nothing that
// they use.
void Server::cut_off(const char* why) {
  for (auto& thread : threads_) {
    thread->post([this, why, &io = *thread] {
      if (io.cut_off()) net::post(main_, [this, why] { note_cut_off(why); });
    });
  }
  ends_by_ = Clock::now() + cut_off_patience;
  grace_.expires_at(ends_by_);
  grace_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    note_cut_off("an io thread does not answer");
    finish();
  });
}

void Server::note_cut_off(std::string_view why) {
  if (std::exchange(drained_, false)) log_.warning("drain cut off", {{"why", why}});
}

// Workers are sent Bye before the threads end; those of other machines by way of the first thread.
void Server::finish() {
  const Time deadline = std::max(ends_by_, Clock::now() + bye_patience);
  std::vector<std::future<void>> dismissed;
  for (auto& pipeline : pipelines_)
    dismissed.push_back(run_on(pipeline->home(), [&hub = pipeline->hub()] { hub.dismiss(); }));
  for (auto& done : dismissed) done.wait_until(deadline);
  run_on(threads_.front()->context(), [] {}).wait_until(deadline);
  main_.stop();
}

}  // namespace millrace
