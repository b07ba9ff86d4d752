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

// Death and holds may come by a file, of which nobody tells.
constexpr std::chrono::milliseconds look_again{2};

}  // namespace

Stream::Stream(int device, std::uint64_t seed)
    : device_(device), random_(static_cast<std::minstd_rand::result_type>(seed)) {
  // The driver's threads take no signals of the program, nor do these.
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  // Detached, as the object lives on and nobody waits for what is left on a destroyed stream.
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
    stand(look_again);
  }
  (void)done_.load(std::memory_order_acquire);  // only now: what is not done is in no order
  return death_of(device_);
}

void Stream::settle() {
  while (touches_memory_.load(std::memory_order_seq_cst)) stand(look_again);
}

void Stream::stand(std::chrono::microseconds at_most) {
  Locked locked(mutex_);
  changed_.wait_for(locked.lock(), at_most);
}

void Stream::pause() {
  const unsigned longest = longest_pause_us();
  // Half of them are none, so that both orders of things come up.
  if (longest == 0 || random_() % 2 == 0 || dead()) return;
  stand(std::chrono::microseconds(random_() % longest));
}

void Stream::wait_while_copies_are_held() {
  while (copies_held() && !dead()) stand(look_again);
}

std::unique_ptr<Operation> Stream::next() {
  Locked locked(mutex_);
  while (waiting_.empty() || (held_ && !dead())) {
    if (waiting_.empty() && closed_) return nullptr;
    if (waiting_.empty())
      changed_.wait(locked.lock());
    else
      changed_.wait_for(locked.lock(), look_again);
  }
  std::unique_ptr<Operation> operation = std::move(waiting_.front());
  waiting_.pop_front();
  return operation;
}

void Stream::execute(Operation& operation) {
  if (operation.kind == Operation::Kind::copy) wait_while_copies_are_held();
  // Before it asks for death, so that settle() after a death finds it or it finds the death.
  touches_memory_.store(operation.touches_memory(), std::memory_order_seq_cst);
  if (operation.kind == Operation::Kind::copy) copy_begins(device_);
  if (!dead()) operation.run(*this);
  touches_memory_.store(false, std::memory_order_seq_cst);
}

void Stream::run() {
  ::pthread_setname_np(::pthread_self(), "cuda-stream");
  while (std::unique_ptr<Operation> operation = next()) {
    // What the program did before it put this comes before it, and nothing else does.
    (void)operation->put.load(std::memory_order_acquire);
    pause();
    execute(*operation);
    operation.reset();  // its uses end before anybody sees that it has
    done_.fetch_add(1, std::memory_order_release);
    wake();
  }
  thread_ended_.store(true, std::memory_order_release);
}

}  // namespace millrace::test::simulated_cuda
