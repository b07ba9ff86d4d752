// SPDX-License-Identifier: Apache-2.0
// The functions of Attachment that call the device.
#include <chrono>
#include <optional>

#include "gpu/host/device_reader.h"
#include "workers/library/attachment.h"

namespace millrace {
namespace {

// If the service was killed, its events may fail for up to this long before its sockets are closed.
constexpr Duration sockets_closed_after = std::chrono::seconds(1);

}  // namespace

// Called without the mutex: the driver may take long, and heartbeats must be sent meanwhile.
template <class Action>
void Attachment::on_device(Action action) {
  if (!device_.reader()) return;
  try {
    action(*device_.reader());
  } catch (const DeviceFailure& error) {
    const WorkerError reason(error.what(), "device");
    // The call may succeed the next time, for example after the capture of a graph.
    if (error.recoverable()) throw reason;
    Lock lock(mutex_);
    throw mark_lost_after_failure(lock, reason).value_or(reason);
  }
}

void Attachment::take_on_device(WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) {
    const SlabRef& slab = batch.slab();
    const DeviceArrays arrays = reader.take(slab.index, slab.shape, slab.memory);
    if (batch.has_added_reset()) reader.renew_flags(arrays, slab.index, slab.shape, slab.memory);
    batch.set_device(arrays);
  });
}

void Attachment::give_back_on_device(const WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) { reader.give_back(batch.slab().index); });
}

// True if the oldest received batch can be taken. Another thread may close the attachment
// meanwhile.
bool Attachment::has_arrived(Lock& lock) {
  if (ready_.empty()) return false;
  if (!device_.reader()) return true;
  const std::uint32_t slab = ready_.front().slab().index;
  lock.unlock();
  bool arrived = false;
  std::optional<WorkerError> failed;
  try {
    arrived = device_.reader()->has_arrived(slab);
  } catch (const DeviceFailure& error) {
    if (!error.recoverable()) failed.emplace(error.what(), "device");
  }
  lock.lock();
  if (failed) {
    if (const auto error = mark_lost_after_failure(lock, *failed)) throw *error;
  }
  return arrived && !ready_.empty();
}

// CUDA calls also fail if the service, which made the events, was killed. That counts as its loss,
// since a new attachment can succeed. Returns the error; nullopt if the connection ended as agreed.
std::optional<WorkerError> Attachment::mark_lost_after_failure(Lock& lock,
                                                               const WorkerError& reason) {
  const Time limit = Clock::now() + sockets_closed_after;
  while (!has_ended() && !interruption_.is_set() && Clock::now() < limit) {
    lock.unlock();
    link_.wait(limit, WorkerLink::Until::readable, interruption_.descriptor());
    lock.lock();
    read(Clock::now());
  }
  if (has_ended()) return lost_;
  mark_lost(reason);
  return reason;
}

void Attachment::use_on(const WorkerBatch& batch, DeviceStream stream) {
  on_device([&](DeviceReader& reader) { reader.use_on(batch.slab().index, stream); });
}

}  // namespace millrace
