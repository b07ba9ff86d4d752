// SPDX-License-Identifier: Apache-2.0
#include "workers/lane_feed.h"

#include <cassert>
#include <utility>

namespace millrace {

namespace {

RowFormat written_by_host(RowFormat format, const Device& device) {
  format.dtype = device.slab_element(format);
  return format;
}

worker_protocol::RowEntry entry_of(const BatchRow& row) {
  const Row& at = row.ready.row;
  return {.stream = row.stream,
          .seq = at.seq,
          .begin = at.begin,
          .gap = at.gap,
          .mark = at.mark ? static_cast<std::int64_t>(*at.mark) : -1,
          .slot = number(row.slot),
          .left = at.left,
          .size = at.size,
          .right = at.right,
          .flags = at.flags,
          .reason = static_cast<std::uint8_t>(at.reason)};
}

RowControl control_of(const BatchRow& row) {
  const Row& at = row.ready.row;
  return {number(row.slot), at.left, at.size, at.right, at.flags};
}

}  // namespace

LaneFeed::LaneFeed(const FeedShape& shape, std::unique_ptr<Device> device, std::uint32_t slabs,
                   Hand hand)
    : format_(written_by_host(shape.format, *device)),
      width_(shape.width),
      device_(std::move(device)),
      ring_(slabs, shape.slab_bytes(format_.dtype)),
      hand_(std::move(hand)),
      device_slabs_(device_->attach(
          ring_, shape.format,
          [this](std::uint32_t slab, std::optional<Time> at) { copied(slab, at); })),
      writer_(format_, shape.slots),
      messages_(slabs) {}

void LaneFeed::write(const Batch& batch, std::vector<worker_protocol::OpenedStream> opened) {
  const std::uint32_t slab = ring_.acquire().value();
  writer_.begin(ring_.slab(slab), batch.rows, static_cast<std::uint32_t>(batch.marks.size()),
                width_);
  worker_protocol::HandedBatch& message = messages_[slab];
  message.framed.clear();
  message.marks.clear();
  for (const BatchRow& row : batch.framed) {
    writer_.add(control_of(row), row.ready.window);
    message.framed.push_back(entry_of(row));
  }
  for (const BatchRow& row : batch.marks) {
    writer_.add_mark(control_of(row));
    message.marks.push_back(entry_of(row));
  }
  const SlabShape shape = writer_.finish();
  message.id = batch.id;
  message.slab = slab;
  message.rows = batch.rows;
  message.width = width_;
  message.trigger = static_cast<std::uint8_t>(batch.trigger);
  message.closed = batch.closed;
  message.opened = std::move(opened);
  on_their_way_.push_back(slab);
  device_slabs_->copy(slab, shape);
}

void LaneFeed::copied(std::uint32_t slab, std::optional<Time> at) {
  assert(at);  // the host device does not fail
  messages_[slab].copied = *at;
  if (hand_) hand_(messages_[slab], ring_.slab(slab));
}

Time LaneFeed::finish() {
  assert(!on_their_way_.empty());
  const std::uint32_t slab = on_their_way_.front();
  on_their_way_.pop_front();
  ring_.release(slab);
  return messages_[slab].copied;
}

}  // namespace millrace
