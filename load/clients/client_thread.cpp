// SPDX-License-Identifier: Apache-2.0
#include "load/clients/client_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

namespace millrace::load {

namespace {

using namespace std::chrono_literals;

// To sleep for less costs more than to send a packet: what is due meanwhile goes in one go, late by
// so much at most.
constexpr Duration shortest_sleep = 50us;
// After the last packet, until all streams are closed.
constexpr Duration patience = 30s;

}  // namespace

ClientThread::ClientThread(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
                           std::unique_ptr<ClientDoor> door)
    : schedule_(run.schedule), door_(std::move(door)), crowd_(run, offset, stride, *door_) {}

void ClientThread::start(Gate& gate) {
  over_ = done_.get_future();
  thread_ = std::jthread([this, &gate] { work(gate); });
}

ClientOutcome& ClientThread::outcome() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return crowd_.outcome();
}

void ClientThread::work(Gate& gate) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // ns; it is 50 us unless said
  guarded(&ClientThread::open, gate);
  gate.opened.count_down();
  gate.started.wait(false);
  guarded(&ClientThread::stream, gate);
  done_.set_value();
  gate.measured.wait(false);
}

void ClientThread::guarded(void (ClientThread::*part)(const Gate&), const Gate& gate) {
  try {
    if (!failure_) (this->*part)(gate);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void ClientThread::open(const Gate& gate) {
  while (!gate.abandoned && crowd_.go_on_opening(Clock::now()))
    door_->poll(Clock::now() + 100ms, crowd_);
}

void ClientThread::stream(const Gate& gate) {
  const Time last = schedule_.last() + patience;
  while (!gate.abandoned) {
    const auto next = crowd_.go_on(Clock::now());
    packets_ = crowd_.outcome().packets;
    if (!next) return;
    const Time now = Clock::now();
    if (now > last) return crowd_.give_up(now);
    door_->poll(*next <= now ? now : std::min(std::max(*next, now + shortest_sleep), last), crowd_);
  }
}

}  // namespace millrace::load
