// SPDX-License-Identifier: Apache-2.0
#include "training/serving/plan_host.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "training/serving/refusals.h"

namespace millrace::training {

namespace wp = worker_protocol;

namespace {

// Above the number that can be outstanding, which is a few for each trainer.
constexpr std::size_t max_messages = std::size_t{1} << 20;

// If the timer is later than this, this process did not run: no trainer was silent meanwhile.
constexpr auto stall = std::chrono::milliseconds(500);

const wp::Refused stopping{"stopping", "the server is stopping"};
const wp::Refused only_trainers{"pipeline",
                                "this server has batches for trainers only, not for workers"};

}  // namespace

PlanHost::PlanHost(net::io_context& home, PlanHostSettings settings, Budget& bytes,
                   SlabThreads& threads, TrainingStats& stats)
    : settings_(std::move(settings)),
      batch_bytes_(most_batch_bytes(settings_.served)),
      threads_(threads),
      stats_(stats),
      maker_(settings_.served, bytes),
      filled_(home, max_messages,
              [this](std::vector<std::uint64_t>& ids) {
                for (const std::uint64_t id : ids) on_filled(id);
              }),
      made_(home, max_messages,
            [this](std::vector<Made>& all) {
              for (Made& made : all) on_made(made);
            }),
      timer_(home.get_executor()) {}

PlanHost::~PlanHost() = default;

void PlanHost::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  std::optional<wp::Refused> refused;
  if (stopped_)
    refused = stopping;
  else if (!hello.trainer)
    refused = only_trainers;
  else if (const auto conflict = ranks_.conflict(*hello.trainer, Clock::now()))
    refused = wp::Refused{"conflict", *conflict};
  const std::uint64_t id = next_id_++;
  try {
    if (!refused) order(id, hello, link.process(processes_) != nullptr);
  } catch (const std::exception& error) {
    refused = wp::Refused{"internal", error.what()};
  }
  if (refused) {
    settings_.log(warning("trainer refused", hello.name, refused->message));
    return link.refuse(*refused);
  }
  AttachedTrainer& trainer = trainers_[id];
  trainer.id = id;
  trainer.link = &link;
  trainer.name = hello.name;
  trainer.rank = *hello.trainer;
  trainer.credits = hello.credits;
  by_link_[&link] = id;
  ranks_.add(id, trainer.rank, trainer.name, Clock::now());
}

Result<wp::Welcome, wp::Refused> PlanHost::description() const { return only_trainers; }

void PlanHost::order(std::uint64_t id, const wp::Hello& hello, bool local) {
  // A trainer that asks for the plan only reads no step.
  auto failed = hello.trainer->plan_only ? FailedStreams{} : skipped_.of(*hello.trainer);
  threads_.post(std::nullopt, [this, id, hello, local, failed = std::move(failed)] {
    made_.put({id, maker_.make(
                       hello, local, [this, id] { filled_.put(id); }, failed)});
  });
}

void PlanHost::on_made(Made& made) {
  const auto found = trainers_.find(made.id);
  if (found == trainers_.end()) {
    if (made.made) free(std::move(made.made->feed));
    return;
  }
  AttachedTrainer& trainer = found->second;
  if (!made.made) {
    settings_.log(warning("trainer refused", trainer.name, made.made.error().message));
    return refuse(trainer, made.made.error());
  }
  if (trainer.rank.plan_only) {
    trainer.link->send(encoder_.encode(made.made->welcome));
    return dismiss(trainer);
  }
  const Time now = Clock::now();
  trainer.feed = std::move(made.made->feed);
  trainer.last_received = trainer.waiting.emplace(now);
  TrainerMemory& memory = trainer.feed->memory();
  stats_.trainers.add(1);
  trainer.link->send(encoder_.encode(made.made->welcome),
                     memory.is_shared() ? memory.descriptor() : -1);
  if (memory.is_shared()) memory.close_descriptor();
  settings_.log({"trainer attached", trainer.name, place_text(trainer.rank)});
  if (settings_.served.epochs && trainer.rank.epoch >= *settings_.served.epochs)
    return finish(trainer);
  serve(trainer, now);
  set_timer(now);
}

void PlanHost::on_filled(std::uint64_t id) {
  const auto found = trainers_.find(id);
  if (found != trainers_.end() && found->second.feed) serve(found->second, Clock::now());
}

void PlanHost::receive(WorkerConnection& link, wp::ToService message) noexcept {
  AttachedTrainer* const trainer = find(link);
  if (!trainer) return;
  trainer->last_received = Clock::now();
  if (const auto* done = std::get_if<wp::Done>(&message)) return receive_done(*trainer, *done);
  if (std::holds_alternative<wp::Hello>(message) || std::holds_alternative<wp::Describe>(message))
    return protocol_error(link, "a second Hello");
  if (!std::holds_alternative<wp::Bye>(message)) return;
  settings_.log({"trainer left", trainer->name});
  dismiss(*trainer);
}

void PlanHost::receive_done(AttachedTrainer& trainer, const wp::Done& done) {
  const auto held = trainer.held.find(done.batch);
  if (held == trainer.held.end())
    return protocol_error(*trainer.link, "Done for a batch that it does not hold");
  if (held->second) trainer.feed->give(*held->second);
  trainer.held.erase(held);
  const Time now = Clock::now();
  if (!trainer.waiting) trainer.waiting = now;
  serve(trainer, now);
}

// The next result is taken also without a credit: it may be the end.
void PlanHost::serve(AttachedTrainer& trainer, Time now) {
  try {
    for (;;) {
      if (!trainer.next) trainer.next = trainer.feed->next();
      if (!trainer.next) return;
      if (std::holds_alternative<FilledBatch>(*trainer.next) && !trainer.has_credit()) return;
      FillResult result = *std::exchange(trainer.next, std::nullopt);
      if (!deliver(trainer, result, now)) return;
    }
  } catch (const LengthFailure& failure) {
    fail(trainer, error_of(failure));
  } catch (const std::exception& error) {
    settings_.log(warning("batches cannot be made", trainer.name, error.what()));
    const bool empty = dynamic_cast<const EmptyEpoch*>(&error) != nullptr;
    refuse(trainer, {empty ? "plan" : "internal", printable_line(error.what())});
  }
}

bool PlanHost::deliver(AttachedTrainer& trainer, FillResult& result, Time now) {
  if (const auto* error = std::get_if<DataError>(&result)) return fail(trainer, *error), false;
  if (auto* batch = std::get_if<FilledBatch>(&result)) {
    const ServedPlan& served = settings_.served;
    if (served.skip_failed)
      for (const TextError& error : add_short_texts(*served.catalog, batch->message.opened))
        note_shortened(trainer, error);
    const auto error =
        served.skip_failed ? std::nullopt : add_texts(*served.catalog, batch->message.opened);
    if (!error) return hand_over(trainer, std::move(*batch), now), true;
    fail(trainer,
         {error->error, error->stream, error->name, batch->message.epoch, batch->message.step});
    return false;
  }
  const auto* end = std::get_if<EpochEnd>(&result);
  if (!end || !settings_.served.epochs || end->epoch + 1 < *settings_.served.epochs) return true;
  finish(trainer);
  return false;
}

void PlanHost::finish(const AttachedTrainer& trainer) {
  settings_.log({"trainer has all epochs", trainer.name});
  dismiss(trainer);
}

void PlanHost::dismiss(const AttachedTrainer& trainer) {
  WorkerConnection& link = *trainer.link;
  remove(trainer);
  link.send_bye();
}

void PlanHost::hand_over(AttachedTrainer& trainer, FilledBatch batch, Time now) {
  wp::HandedBatch& message = batch.message;
  message.id = BatchId{trainer.next_batch++};
  message.slab = batch.buffer;
  message.copied = now;
  const bool shared = trainer.feed->memory().is_shared();
  const Bytes tensor = shared ? Bytes() : trainer.feed->inline_tensor(batch);
  const Bytes encoded = encoder_.encode(message, tensor);
  trainer.held[message.id] = shared ? std::optional(batch.buffer) : std::nullopt;

  // Before it is sent: who has a batch and asks for the metrics finds it counted.
  stats_.batches.add();
  stats_.frames.add(std::uint64_t{message.rows} * message.width);
  stats_.padding.add(padding_of(message));
  const Duration filling = trainer.feed->filling();
  stats_.fill.observe(filling - std::exchange(trainer.filling, filling));
  if (trainer.waiting) stats_.waited.add(now - *trainer.waiting);
  trainer.waiting = trainer.has_credit() ? std::optional(now) : std::nullopt;
  note_skipped(trainer, batch.failed);
  trainer.at = {message.epoch, message.step};
  update_position();
  trainer.link->send(encoded);
  if (!shared) trainer.feed->give(batch.buffer, std::move(message));
}

// Trainers attach again: the log has each stream once, and the metric once per epoch and rank.
void PlanHost::note_skipped(const AttachedTrainer& trainer, const std::vector<DataError>& failed) {
  skipped_.add(trainer.rank, failed);
  auto& counted = counted_[trainer.rank.rank];
  for (const DataError& error : failed) {
    std::erase_if(counted, [&](const auto& one) { return one.first + 1 < error.epoch; });
    if (counted.emplace(error.epoch, error.stream).second) stats_.errors[error.error.fault].add();
    if (logged_.insert(error.stream).second)
      settings_.log(warning("stream is skipped", trainer.name, error.error.message, error.name));
  }
}

void PlanHost::note_shortened(const AttachedTrainer& trainer, const TextError& error) {
  if (shortened_.insert(error.stream).second)
    settings_.log(
        warning("name or meta is too long", trainer.name, error.error.message, error.name));
}

void PlanHost::fail(AttachedTrainer& trainer, const DataError& error) {
  stats_.errors[error.error.fault].add();
  settings_.log(
      warning("stream cannot be delivered", trainer.name, error.error.message, error.name));
  refuse(trainer, refusal_of(error));
}

void PlanHost::refuse(AttachedTrainer& trainer, const wp::Refused& why) {
  WorkerConnection& link = *trainer.link;
  remove(trainer);
  link.refuse(why);
}

void PlanHost::protocol_error(WorkerConnection& link, std::string_view what) noexcept {
  AttachedTrainer* const trainer = find(link);
  if (!trainer) return;
  settings_.log(warning("trainer broke the protocol", trainer->name, what));
  refuse(*trainer, {"protocol", std::string(what)});
}

void PlanHost::no_room(WorkerConnection& link, std::string_view what) noexcept {
  AttachedTrainer* const trainer = find(link);
  if (!trainer) return;
  settings_.log(warning("no room for trainer messages", trainer->name, what));
  refuse(*trainer, {"no_room", std::string(what)});
}

void PlanHost::lost(WorkerConnection& link, WorkerFailure why, LossCause) noexcept {
  AttachedTrainer* const trainer = find(link);
  if (!trainer) return;
  settings_.log(warning("trainer lost", trainer->name, name_of(why)));
  remove(*trainer);
}

AttachedTrainer* PlanHost::find(const WorkerConnection& link) {
  const auto found = by_link_.find(&link);
  return found == by_link_.end() ? nullptr : &trainers_.at(found->second);
}

// The rank is free at once: the same trainer may attach again while its threads still end.
void PlanHost::remove(const AttachedTrainer& trainer) {
  by_link_.erase(trainer.link);
  ranks_.remove(trainer.id);
  auto removed = trainers_.extract(trainer.id);
  if (!removed.mapped().feed) return;
  stats_.trainers.add(-1);
  update_position();
  free(std::move(removed.mapped().feed));
}

void PlanHost::free(std::unique_ptr<TrainerFeed> feed) noexcept {
  try {
    threads_.post(0, [feed = std::move(feed)]() mutable { feed.reset(); });
  } catch (const std::bad_alloc&) {  // the destruction of the job ended it here
  }
}

void PlanHost::stop() noexcept {
  stopped_ = true;
  if (settings_.served.function) settings_.served.function->stop();
  while (!trainers_.empty()) {
    AttachedTrainer& trainer = trainers_.begin()->second;
    WorkerConnection& link = *trainer.link;
    const bool welcomed = trainer.feed != nullptr;
    remove(trainer);
    welcomed ? link.send_bye() : link.refuse(stopping);
  }
  timer_.cancel();
}

void PlanHost::update_position() {
  std::optional<PlanPosition> last;
  for (const auto& [id, trainer] : trainers_)
    if (trainer.at && (!last || std::pair(trainer.at->epoch, trainer.at->step) <
                                    std::pair(last->epoch, last->step)))
      last = trainer.at;
  if (!last) return;
  stats_.epoch.set(static_cast<std::int64_t>(last->epoch));
  stats_.step.set(static_cast<std::int64_t>(last->step));
}

void PlanHost::set_timer(Time now) {
  if (stopped_ || trainers_.empty() || timer_at_ != Time::max()) return;
  timer_at_ = now + settings_.heartbeats.interval;
  for (const auto& [id, trainer] : trainers_)
    if (trainer.feed)
      timer_at_ = std::min(timer_at_, trainer.last_received + settings_.heartbeats.silence);
  timer_at_ = std::max(timer_at_, now);
  timer_.expires_at(timer_at_);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) on_timer();
  });
}

void PlanHost::on_timer() noexcept {
  const Time now = Clock::now(), was_due = std::exchange(timer_at_, Time::max());
  const Duration late = now - was_due;
  std::vector<std::uint64_t> silent;
  for (auto& [id, trainer] : trainers_) {
    if (!trainer.feed) continue;
    if (late > stall) trainer.last_received = std::min(trainer.last_received + late, now);
    if (trainer.last_received + settings_.heartbeats.silence <= now) silent.push_back(id);
    if (trainer.link->unsent() == 0) trainer.link->send(encoder_.encode(wp::Heartbeat{}));
  }
  for (const std::uint64_t id : silent) {
    settings_.log(warning("trainer lost", trainers_.at(id).name, "no heartbeat"));
    refuse(trainers_.at(id), {"timeout", "no heartbeat"});
  }
  set_timer(now);
}

}  // namespace millrace::training
