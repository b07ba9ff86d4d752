// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_lane.h"

#include <chrono>
#include <stdexcept>

#include "bench/gpu_timing.h"

namespace millrace::bench {

namespace {

std::vector<std::byte> random_frames(std::size_t bytes) {
  std::vector<std::byte> frames(bytes);
  fill_randomly(frames);
  return frames;
}

}  // namespace

Lane::Lane(Device& device, std::uint32_t slabs, std::uint32_t rows, std::uint32_t width)
    : tensor_{.dtype = Element::f32},
      format_(device.slab_format(tensor_)),
      rows_(rows),
      width_(width),
      frames_(random_frames(std::size_t{rows} * width * size_of(format_.dtype))),
      writer_(format_, rows),
      ring_(slabs, bytes()),
      state_(slabs),
      reports_(4 * std::size_t{slabs}),
      slabs_(device.attach(
          ring_, [this](DeviceReport report) { (void)reports_.try_push(std::move(report)); })),
      reader_(slabs_->reader(tensor_)) {
  if (!slabs_->pinned()) throw std::runtime_error("the pages of slabs cannot be locked");
}

SlabShape Lane::shape() const {
  return {.rows = rows_, .marks = 0, .width = width_, .values = 1, .element = format_.dtype};
}

std::uint32_t Lane::acquire() {
  for (;;) {
    if (const auto slab = ring_.acquire()) {
      state_[*slab] = {};
      return *slab;
    }
    wait();
  }
}

SlabShape Lane::build(std::uint32_t slab) {
  writer_.begin(ring_.slab(slab), rows_, 0, width_);
  const std::size_t row_bytes = frames_.size() / rows_;
  for (std::uint32_t row = 0; row < rows_; ++row)
    writer_.add({.slot = row, .size = width_},
                {Bytes(frames_).subspan(row * row_bytes, row_bytes)});
  return writer_.finish();
}

void Lane::copy(std::uint32_t slab, const SlabShape& shape) {
  if (slabs_->copy(slab, shape) != Copying::under_way)
    throw std::runtime_error("a copy has failed");
}

DeviceArrays Lane::take(std::uint32_t slab, const SlabShape& shape) {
  return reader_->take(slab, shape, ring_.slab(slab));
}

void Lane::done(std::uint32_t slab) {
  reader_->give_back(slab);
  state_[slab].done = true;
  give_back_if_done(slab);
}

void Lane::drain() {
  while (ring_.used() > 0) wait();
}

void Lane::wait() {
  const auto report = reports_.pop_until(Clock::now() + std::chrono::seconds(10));
  if (!report) throw std::runtime_error("the device did not report in time");
  handle(*report);
}

void Lane::handle(const DeviceReport& report) {
  if (const auto* lost = std::get_if<DeviceLost>(&report)) throw std::runtime_error(lost->what);
  if (const auto* freed = std::get_if<SlabFreed>(&report)) ring_.release(freed->slab);
  if (const auto* ended = std::get_if<CopyEnded>(&report)) {
    state_[ended->slab].copied = true;
    give_back_if_done(ended->slab);
  }
}

void Lane::give_back_if_done(std::uint32_t slab) {
  const Slab& state = state_[slab];
  if (state.copied && state.done && slabs_->give_back(slab)) ring_.release(slab);
}

}  // namespace millrace::bench
