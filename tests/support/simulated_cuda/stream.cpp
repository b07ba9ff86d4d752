// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/stream.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

// Death and holds may depend on a file, whose change wakes no thread.
constexpr std::chrono::milliseconds poll_period{2};

}  // namespace

Stream::Stream(int device, std::uint64_t seed)
    : device_(device), random_(static_cast<std::minstd_rand::result_type>(seed)) {
  // Like the driver's threads, these do not receive signals of the program.
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  // Detached: the object is never deleted, and no code waits for a destroyed stream.
  std::thread([this] { run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Stream::put(std::unique_ptr<Operation> operation) {
  // Pairs with the load in run().
  operation->put.store(true, std::memory_order_release);
  put_.fetch_add(1, std::memory_order_relaxed);
  const Locked locked(mutex_);
  waiting_.push_back(std::move(operation));
  changed_.notify_all();
}

void Stream::close() {
  const Locked locked(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Stream::hold(bool held) {
  const Locked locked(mutex_);
  held_ = held;
  changed_.notify_all();
}

void Stream::wake() {
  const Locked locked(mutex_);
  changed_.notify_all();
}

bool Stream::dead() const { return death_of(device_) != cudaSuccess; }

bool Stream::idle() const {
  const std::uint64_t put = put_.load(std::memory_order_relaxed);
  return done_.load(std::memory_order_relaxed) >= put &&
         done_.load(std::memory_order_acquire) >= put;
}

cudaError_t Stream::wait() {
  const std::uint64_t put = put_.load(std::memory_order_relaxed);
  while (done_.load(std::memory_order_relaxed) < put) {
    if (const cudaError_t death = death_of(device_)) return death;
    wait_for_change(poll_period);
  }
  (void)done_.load(std::memory_order_acquire);  // only now: unfinished operations are not ordered
  return death_of(device_);
}

void Stream::settle() {
  while (touches_memory_.load(std::memory_order_seq_cst)) wait_for_change(poll_period);
}

void Stream::wait_for_change(std::chrono::microseconds at_most) {
  Locked locked(mutex_);
  changed_.wait_for(locked.lock(), at_most);
}

void Stream::pause() {
  const unsigned longest = longest_pause_us();
  // Half of the pauses are skipped, so that both orders of events occur.
  if (longest == 0 || random_() % 2 == 0 || dead()) return;
  wait_for_change(std::chrono::microseconds(random_() % longest));
}

void Stream::wait_while_copies_are_held() {
  while (copies_held() && !dead()) wait_for_change(poll_period);
}

std::unique_ptr<Operation> Stream::next() {
  Locked locked(mutex_);
  while (waiting_.empty() || (held_ && !dead())) {
    if (waiting_.empty() && closed_) return nullptr;
    if (waiting_.empty())
      changed_.wait(locked.lock());
    else
      changed_.wait_for(locked.lock(), poll_period);
  }
  std::unique_ptr<Operation> operation = std::move(waiting_.front());
  waiting_.pop_front();
  return operation;
}

void Stream::execute(Operation& operation) {
  if (operation.kind == Operation::Kind::copy) wait_while_copies_are_held();
  // Before the check for death: after a death, either settle() sees this or the check sees the
  // death.
  touches_memory_.store(operation.touches_memory(), std::memory_order_seq_cst);
  if (!dead()) operation.run(*this);
  touches_memory_.store(false, std::memory_order_seq_cst);
}

void Stream::run() {
  ::pthread_setname_np(::pthread_self(), "cuda-stream");
  while (std::unique_ptr<Operation> operation = next()) {
    // Orders only what the program did before it enqueued this operation.
    (void)operation->put.load(std::memory_order_acquire);
    pause();
    execute(*operation);
    operation.reset();  // its uses end before its end is visible
    done_.fetch_add(1, std::memory_order_release);
    wake();
  }
  thread_ended_.store(true, std::memory_order_release);
}

}  // namespace millrace::test::simulated_cuda
