// SPDX-License-Identifier: Apache-2.0
// What an attachment does on the device of its worker. Without the mutex, but for a question: a
// driver may take its time, and the service is to be heard meanwhile.
#include "workers/attachment.h"

namespace millrace {

bool Attachment::has_arrived(const WorkerBatch& batch) {
  if (!device_.reader()) return true;
  try {
    return device_.reader()->has_arrived(batch.place().slab);
  } catch (const DeviceFailure& error) {
    if (error.passes()) return false;
    const WorkerError reason(error.what(), "device");
    lose(reason);
    throw reason;
  }
}

void Attachment::take_on_device(WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) {
    const BatchPlace& place = batch.place();
    batch.take(reader.take(place.slab, place.shape, place.memory));
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
  const Lock lock(mutex_);
  if (!over()) lost_ = reason;
  link_.end();
  throw reason;
}

}  // namespace millrace
