// SPDX-License-Identifier: Apache-2.0
#include "load/clients/client_thread.h"

#include <algorithm>
#include <utility>

#include "base/quiet_thread.h"

namespace millrace::load {

namespace {

using namespace std::chrono_literals;

// A shorter sleep needs more CPU time than sending a packet. Packets that fall due during it are
// sent together, at most this much late.
constexpr Duration shortest_sleep = 50us;
// From the last packet until all streams are closed.
constexpr Duration closing_timeout = 30s;

}  // namespace

ClientThread::ClientThread(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
                           std::unique_ptr<LoadTransport> transport)
    : schedule_(run.schedule),
      transport_(std::move(transport)),
      clients_(run, offset, stride, *transport_) {}

void ClientThread::start(Gate& gate) {
  finished_ = done_.get_future();
  thread_ = std::jthread([this, &gate] { work(gate); });
}

ClientOutcome& ClientThread::outcome() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return clients_.outcome();
}

void ClientThread::work(Gate& gate) {
  const PreciseTimers precise;
  run_part(&ClientThread::open, gate);
  gate.opened.count_down();
  gate.started.wait(false);
  run_part(&ClientThread::stream, gate);
  done_.set_value();
  gate.measured.wait(false);
}

void ClientThread::run_part(void (ClientThread::*part)(const Gate&), const Gate& gate) {
  try {
    if (!failure_) (this->*part)(gate);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void ClientThread::open(const Gate& gate) {
  while (!gate.abandoned && clients_.continue_opening(Clock::now()))
    transport_->poll(Clock::now() + 100ms, clients_);
}

void ClientThread::stream(const Gate& gate) {
  const Time last = schedule_.last() + closing_timeout;
  while (!gate.abandoned) {
    const auto next = clients_.advance(Clock::now());
    packets_ = clients_.outcome().packets;
    if (!next) return;
    const Time now = Clock::now();
    if (now > last) return clients_.abort_remaining(now);
    transport_->poll(*next <= now ? now : std::min(std::max(*next, now + shortest_sleep), last),
                     clients_);
  }
}

}  // namespace millrace::load
