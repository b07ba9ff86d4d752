// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_maker.h"

#include <exception>
#include <string>
#include <utility>

#include "training/plans/make_plan.h"
#include "training/serving/refusals.h"
#include "workers/hub/slab_maker.h"

namespace millrace::training {

namespace wp = worker_protocol;

Result<std::shared_ptr<Epochs>, wp::Refused> TrainerMaker::epochs_for(Rank rank) {
  if (world_ == rank.world) return epochs_;
  auto plan = make_plan(*served_.catalog, served_.options, rank);
  if (!plan) return wp::Refused{"plan", plan.error().message};
  epochs_ = std::make_shared<Epochs>(std::shared_ptr<const Plan>(std::move(*plan)));
  epochs_->start();
  world_ = rank.world;
  return epochs_;
}

Result<MadeTrainer, wp::Refused> TrainerMaker::make(const wp::Hello& hello, bool local,
                                                    std::function<void()> on_filled,
                                                    const FailedStreams& failed) try {
  const wp::TrainerHello& trainer = *hello.trainer;
  const Rank rank{trainer.rank, trainer.world};
  auto epochs = epochs_for(rank);
  if (!epochs) return epochs.error();
  const Plan& plan = (*epochs)->plan();
  const std::size_t slab = slab_bytes(served_, plan, rank);
  if (!local && slab > max_sent_tensor)
    return wp::Refused{"plan", "a batch of this plan can be longer than a message"};
  // A batch that is sent is in a message, too.
  const std::uint32_t buffers = hello.credits + 1, messages = local ? 0 : hello.credits;
  const std::uint64_t needed = (std::uint64_t{buffers} + messages) * slab;
  Share share(bytes_, needed);
  if (!share)
    return wp::Refused{needed > bytes_.limit() ? "plan" : "no_room",
                       "the batches of this trainer would exceed [limits] slab_bytes: a batch has "
                       "up to " +
                           std::to_string(slab) + " bytes, and the trainer keeps up to " +
                           std::to_string(hello.credits)};
  MadeTrainer made;
  made.welcome =
      welcome_of(served_, plan, trainer, (*epochs)->get(trainer.epoch)->steps(), shares_slots_);
  if (trainer.plan_only) return made;
  auto memory = std::make_unique<TrainerMemory>(buffers, slab, std::move(share), local);
  if (local) {
    made.welcome.slabs = buffers;
    made.welcome.slab_bytes = slab;
  }
  made.feed = std::make_unique<TrainerFeed>(served_, std::move(*epochs), trainer, std::move(memory),
                                            std::move(on_filled), failed);
  return made;
} catch (const EmptyEpoch& error) {
  return wp::Refused{"plan", printable_line(error.what())};
} catch (const LengthFailure& failure) {
  return refusal_of(error_of(failure));
} catch (const std::exception& error) {
  return wp::Refused{"internal",
                     printable_line(std::string("the batches cannot be made: ") + error.what())};
}

}  // namespace millrace::training
