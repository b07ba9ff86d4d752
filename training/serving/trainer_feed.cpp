// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_feed.h"

#include <cstring>
#include <utility>

namespace millrace::training {

namespace {

FillerSettings settings_of(const ServedPlan& served, const worker_protocol::TrainerHello& trainer,
                           std::uint32_t buffers, std::function<void()> on_filled) {
  return {.rank = {trainer.rank, trainer.world},
          .stride = trainer.stride,
          .first_step = trainer.step % trainer.stride,
          .threads = served.threads,
          .ahead = 0,
          .buffers = buffers,
          .format = served.format,
          .skip_failed = served.skip_failed,
          .on_filled = std::move(on_filled)};
}

}  // namespace

TrainerFeed::TrainerFeed(const ServedPlan& served, std::shared_ptr<Epochs> epochs,
                         const worker_protocol::TrainerHello& trainer,
                         std::unique_ptr<TrainerMemory> memory, std::function<void()> on_filled,
                         const FailedStreams& failed)
    : memory_(std::move(memory)),
      filler_(served.catalog, std::move(epochs), *memory_,
              settings_of(served, trainer, memory_->count(), std::move(on_filled)),
              served.function) {
  for (std::uint32_t buffer = memory_->count(); buffer > 0; --buffer) filler_.give(buffer - 1);
  filler_.set_failed(failed);
  filler_.start({trainer.epoch, trainer.step}, trainer.resets);
}

Bytes TrainerFeed::inline_tensor(const FilledBatch& batch) {
  const SlabShape& shape = batch.shape;
  const SlabLayout layout = layout_of(shape);
  const Bytes memory = memory_->written_memory(batch.buffer);
  const std::size_t tensor =
      std::size_t{shape.rows} * shape.width * shape.values * size_of(shape.element);
  if (shape.companions == 0) return memory.first(tensor);
  // The control arrays lie between the padded tensor and the companions.
  joined_.resize(layout.slots + shape.companions);
  std::memcpy(joined_.data(), memory.data(), layout.slots);
  std::memcpy(joined_.data() + layout.slots, memory.data() + layout.companions, shape.companions);
  return joined_;
}

}  // namespace millrace::training
