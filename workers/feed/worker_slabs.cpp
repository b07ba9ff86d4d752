// SPDX-License-Identifier: Apache-2.0
#include "workers/feed/worker_slabs.h"

#include <cassert>
#include <utility>

#include "gpu/host/host_device.h"
#include "workers/feed/row_entry.h"

namespace millrace {

namespace {

// Copies: the row keeps its messages, because it may be handed over again.
void add_posts(const BatchRow& row, std::vector<worker_protocol::Post>& posts) {
  if (!row.ready.posts) return;
  for (const StreamPost& message : *row.ready.posts)
    posts.push_back({row.stream, row.ready.row.seq, message.position, message.text, message.set});
}

}  // namespace

WorkerSlabs::WorkerSlabs(const BatchShape& shape, std::unique_ptr<Device> device,
                         std::uint32_t slabs, DeviceReports reports)
    : format_(device->slab_format(shape.format)),
      device_(std::move(device)),
      ring_(slabs, shape.slab_bytes(format_.dtype)),
      device_slabs_(device_->attach(ring_, std::move(reports))),
      writer_(format_, shape.slots),
      slabs_(slabs) {}

const worker_protocol::HandedBatch* WorkerSlabs::write(
    const Batch& batch, std::vector<worker_protocol::OpenedStream> opened) {
  const std::uint32_t slab = ring_.acquire().value();
  writer_.begin(ring_.slab(slab), batch.rows, static_cast<std::uint32_t>(batch.marks.size()),
                batch.width);
  worker_protocol::HandedBatch& message = slabs_[slab].message;
  message.framed.clear();
  message.marks.clear();
  for (const BatchRow& row : batch.framed) {
    writer_.add(control_of(number(row.slot), row.ready.row), row.ready.window);
    message.framed.push_back(entry_of(row.stream, number(row.slot), row.ready.row));
    add_posts(row, message.posts);
  }
  for (const BatchRow& row : batch.marks) {
    writer_.add_mark(control_of(number(row.slot), row.ready.row));
    message.marks.push_back(entry_of(row.stream, number(row.slot), row.ready.row));
    add_posts(row, message.posts);
  }
  message.id = batch.id;
  message.rows = batch.rows;
  message.width = batch.width;
  message.trigger = static_cast<std::uint8_t>(batch.trigger);
  message.closed = batch.closed;
  message.opened = std::move(opened);
  return copy(slab, writer_.finish());
}

const worker_protocol::HandedBatch* WorkerSlabs::copy(std::uint32_t slab, const SlabShape& shape) {
  worker_protocol::HandedBatch& message = slabs_[slab].message;
  message.slab = slab;
  in_flight_.push_back(slab);
  const Copying copying = device_slabs_->copy(slab, shape);
  slabs_[slab].copying = copying == Copying::under_way;
  message.copied = Clock::now();
  return copying != Copying::failed ? &message : nullptr;
}

Time WorkerSlabs::oldest_copied() const {
  return in_flight_.empty() ? Time() : slabs_[in_flight_.front()].message.copied;
}

void WorkerSlabs::finish() {
  assert(!in_flight_.empty());
  const std::uint32_t slab = in_flight_.front();
  in_flight_.pop_front();
  slabs_[slab].returned = true;
  slabs_[slab].message.posts.clear();
  release_if_done(slab);
}

bool WorkerSlabs::on_copy_ended(const CopyEnded& copy) {
  Slab& slab = slabs_[copy.slab];
  slab.copying = false;
  slab.message.copied = copy.at;
  return release_if_done(copy.slab);
}

bool WorkerSlabs::release_if_done(std::uint32_t slab) {
  if (!slabs_[slab].returned || slabs_[slab].copying || !device_slabs_->give_back(slab))
    return false;
  on_slab_freed(slab);
  return true;
}

void WorkerSlabs::on_slab_freed(std::uint32_t slab) {
  slabs_[slab].returned = false;
  ring_.release(slab);
}

std::unique_ptr<DeviceSlabs> WorkerSlabs::leave_copies_to_worker() {
  device_ = open_device_of_worker(std::string(device_->name()));
  auto former = std::exchange(device_slabs_, device_->attach(ring_, {}));
  for (std::uint32_t slab = 0; slab < slabs_.size(); ++slab) release_if_done(slab);
  return former;
}

void WorkerSlabs::on_former_slabs_freed() {
  for (std::uint32_t slab = 0; slab < slabs_.size(); ++slab)
    if (std::exchange(slabs_[slab].copying, false)) release_if_done(slab);
}

}  // namespace millrace
