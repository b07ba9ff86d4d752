// SPDX-License-Identifier: Apache-2.0
// What an attachment does on the device of its worker. Without the mutex: a driver may take its
// time, and heartbeats must go on meanwhile.
#include <chrono>

#include "workers/library/attachment.h"

namespace millrace {

namespace {

// The events of a killed service may fail this long before the kernel closes its sockets.
constexpr Duration sockets_closed_after = std::chrono::seconds(1);

}  // namespace

// Whether the oldest batch that was received can be taken. Another thread may close the attachment
// meanwhile.
bool Attachment::has_arrived(Lock& lock) {
  if (ready_.empty()) return false;
  if (!device_.reader()) return true;
  const std::uint32_t slab = ready_.front().place().slab;
  lock.unlock();
  bool arrived = false;
  std::optional<WorkerError> failed;
  try {
    arrived = device_.reader()->has_arrived(slab);
  } catch (const DeviceFailure& error) {
    if (!error.passes()) failed.emplace(error.what(), "device");
  }
  lock.lock();
  if (failed) {
    if (const auto error = lose_after_failure(lock, *failed)) throw *error;
  }
  return arrived && !ready_.empty();
}

// Calls of CUDA also fail if the service that made the events was killed. Then the reason is the
// loss of the service: a new attachment can succeed. Returns the reason; nothing if the connection
// ended as agreed.
std::optional<WorkerError> Attachment::lose_after_failure(Lock& lock, const WorkerError& reason) {
  const Time limit = Clock::now() + sockets_closed_after;
  while (!over() && !interrupted_ && Clock::now() < limit) {
    lock.unlock();
    link_.wait(limit, WorkerLink::Until::message, wake_.get());
    lock.lock();
    read(Clock::now());
  }
  if (over()) return lost_;
  lose(reason);
  return reason;
}

void Attachment::take_on_device(WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) {
    const BatchPlace& place = batch.place();
    const DeviceArrays arrays = reader.take(place.slab, place.shape, place.memory);
    if (batch.is_renewed()) reader.renew_flags(arrays, place.slab, place.shape, place.memory);
    batch.take(arrays);
  });
}

void Attachment::use_on(const WorkerBatch& batch, DeviceStream stream) {
  on_device([&](DeviceReader& reader) { reader.use_on(batch.place().slab, stream); });
}

void Attachment::give_back_on_device(const WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) { reader.give_back(batch.place().slab); });
}

template <class Does>
void Attachment::on_device(Does does) {
  if (!device_.reader()) return;
  try {
    does(*device_.reader());
  } catch (const DeviceFailure& error) {
    device_failed(error);
  }
}

// What the device refused, as in the midst of the capture of a graph, may be done right next time.
void Attachment::device_failed(const DeviceFailure& error) {
  const WorkerError reason(error.what(), "device");
  if (error.passes()) throw reason;
  Lock lock(mutex_);
  throw lose_after_failure(lock, reason).value_or(reason);
}

}  // namespace millrace
