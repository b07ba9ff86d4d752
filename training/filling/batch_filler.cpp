// SPDX-License-Identifier: Apache-2.0
#include "training/filling/batch_filler.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "base/quiet_thread.h"
#include "training/filling/filler_message.h"
#include "training/filling/filling_job.h"
#include "training/filling/filling_results.h"
#include "training/filling/job_source.h"
#include "training/filling/part_work.h"
#include "training/filling/row_filler.h"
#include "training/filling/shared_filling.h"

namespace millrace::training {

namespace {

using Job = FillingJob;
using Kind = FillingJob::Kind;
using Message = FillerMessage;

// Jobs without a buffer: a planned one, the end of an epoch or a thread, no buffer, and a failure.
constexpr std::size_t other_jobs = 5;

}  // namespace

// The first thread makes the jobs and fills its part of them. Without threads, the caller does.
struct BatchFiller::Impl {
  Impl(std::shared_ptr<const Catalog> the_catalog, std::shared_ptr<Epochs> the_epochs,
       BatchBuffers& the_buffers, FillerSettings the_settings,
       std::shared_ptr<StreamFunction> the_function)
      : catalog(std::move(the_catalog)),
        epochs(std::move(the_epochs)),
        buffers(the_buffers),
        settings(std::move(the_settings)),
        function(std::move(the_function)),
        parts(std::max<std::size_t>(settings.threads, 1)),
        source(*catalog, epochs->plan(), buffers, settings, parts,
               [this](std::uint64_t epoch) { ask(epoch); }),
        messages(std::make_shared<Queue<Message>>(3 * (settings.buffers + other_jobs))),
        results(settings.buffers + other_jobs, settings.half_ahead(), settings.on_filled) {}

  void start(PlanPosition position, bool resets);
  bool stop_until(Time deadline);

  // On the first thread.
  void drive();
  void receive(Message& message);
  void receive_all();
  void ask(std::uint64_t epoch);
  void begin_jobs();
  void plan_ahead();
  void assign(PartTask task);
  Job* next_job();

  // On each thread.
  RowFiller row_filler(std::size_t part);
  void serve(std::size_t part);
  void fill(Job& job, RowFiller& filler, std::size_t part);
  void finish(Job& job);
  void publish(Job& job);

  // On the caller's thread.
  void send(Message message);
  Job* await(Time deadline);
  Job* fill_here(Time deadline);
  FillResult take(Job& job);

  const std::shared_ptr<const Catalog> catalog;
  const std::shared_ptr<Epochs> epochs;
  BatchBuffers& buffers;
  FillerSettings settings;
  const std::shared_ptr<StreamFunction> function;
  std::size_t parts;  // threads that fill

  // For the first thread while it runs.
  JobSource source;
  Job failed_plan{{}, 0, 0};
  std::vector<Message> received;
  PartWork own;

  std::shared_ptr<Queue<Message>> messages;            // to the first thread
  FillingResults results;                              // to the caller
  std::vector<std::unique_ptr<Queue<PartTask>>> work;  // to the other threads
  std::vector<FailedStreams> skipped{parts};           // by thread
  SharedFilling filling;
  std::atomic<bool> caller_waits{false};

  // For the caller.
  bool running = false;
  std::uint64_t run = 0;                // number of starts
  std::uint64_t batches = 0;            // ids
  std::optional<RowFiller> own_filler;  // without threads
  std::optional<QuietThreads> threads{std::in_place, parts};
};

void BatchFiller::Impl::start(PlanPosition position, bool resets) {
  assert(!running);
  epochs->start();
  ++run;
  source.start(position, resets);
  running = true;
  if (settings.threads == 0) own_filler.emplace(row_filler(0));
  if (settings.threads > 0) try {
      for (std::size_t part = 1; part < parts; ++part)
        work.push_back(std::make_unique<Queue<PartTask>>(2 * settings.buffers + other_jobs +
                                                         JobSource::most_planned));
      for (std::size_t part = 1; part < parts; ++part)
        threads->start("millrace-filler", [this, part] { serve(part); });
      threads->start("millrace-filler", [this] { drive(); });
    } catch (...) {
      stop_until(Time::max());
      throw;
    }
}

bool BatchFiller::Impl::stop_until(Time deadline) {
  if (!running) return true;
  if (filling.stop()) (void)messages->try_push({.kind = Message::Kind::stop});
  messages->wake();
  for (const auto& queue : work) queue->close();
  if (!threads->join_until(deadline)) return false;
  work.clear();
  own_filler.reset();
  running = false;
  ++run;  // answers to this run are ignored
  receive_all();
  results.clear();
  own = {};
  source.stop();
  filling.restart();
  return true;
}

void BatchFiller::Impl::drive() try {
  RowFiller filler = row_filler(0);
  while (!filling.is_stopping()) {
    receive_all();
    begin_jobs();
    plan_ahead();
    if (Job* const job = own.next_fill()) {
      fill(*job, filler, 0);
    } else if (!own.open_next(filler) &&
               !filling.is_stopping()) {  // receive_all() may have taken the message of stop()
      // Each batch has two messages: it is taken, and its buffer is given.
      messages->wait_for(2 * settings.half_ahead(), Time::max());
    }
  }
} catch (...) {
  results.publish_end();
}

void BatchFiller::Impl::receive(Message& message) {
  if (message.kind == Message::Kind::given) source.give(message.buffer, std::move(message.spent));
  if (message.kind == Message::Kind::taken) source.take_back(*message.job);
  if (message.kind != Message::Kind::epoch || message.run != run) return;
  if (message.epoch) epochs->prepare(message.number + 1);
  source.set_epoch(std::move(message.epoch), std::move(message.error));
}

// The answer may come after stop(), and even after the end of this object.
void BatchFiller::Impl::ask(std::uint64_t number) {
  epochs->ask(number, [queue = messages, of_run = run, number](Epochs::Distributed epoch,
                                                               std::exception_ptr error) {
    (void)queue->try_push({.kind = Message::Kind::epoch,
                           .run = of_run,
                           .number = number,
                           .epoch = std::move(epoch),
                           .error = std::move(error)});
    queue->wake();
  });
}

void BatchFiller::Impl::receive_all() {
  messages->drain(received);
  for (Message& message : received) receive(message);
}

void BatchFiller::Impl::begin_jobs() {
  while (!filling.has_failed()) {
    Job* const job = next_job();
    if (!job) return;
    if (job->kind != Kind::batch) {
      publish(*job);
      continue;
    }
    job->remaining = static_cast<std::uint32_t>(parts);
    assign({job, true});
  }
}

void BatchFiller::Impl::plan_ahead() {
  while (!filling.has_failed()) {
    Job* const job = source.plan_ahead();
    if (!job) return;
    assign({job, false});
  }
}

void BatchFiller::Impl::assign(PartTask task) {
  for (const auto& queue : work) (void)queue->try_push(PartTask(task));
  own.add(task);
}

// An exception of the source becomes a job too, behind those that it has made.
Job* BatchFiller::Impl::next_job() try {
  Job* const job = source.next();
  if (job && job->kind == Kind::failed) filling.set_failed(job->number);
  return job;
} catch (...) {
  failed_plan.kind = Kind::failed;
  failed_plan.thrown = std::current_exception();
  failed_plan.number = source.begun();
  filling.set_failed(failed_plan.number);
  return &failed_plan;
}

RowFiller BatchFiller::Impl::row_filler(std::size_t part) {
  const RowFiller::Part share{part, parts, settings.skip_failed ? &skipped[part] : nullptr};
  return {*catalog, function.get(), epochs->plan().slots(settings.rank), share};
}

void BatchFiller::Impl::serve(std::size_t part) try {
  RowFiller filler = row_filler(part);
  PartWork().run(*work[part - 1], filler, filling, [&](Job& job) { fill(job, filler, part); });
} catch (...) {
  results.publish_end();
}

void BatchFiller::Impl::fill(Job& job, RowFiller& filler, std::size_t part) {
  if (filling.fill(job, filler, part)) finish(job);
}

void BatchFiller::Impl::finish(Job& job) {
  if (filling.is_stopping()) return;
  if (job.first_failure()) job.kind = Kind::failed;
  if (filling.is_before_failure(job)) try {
      job.end_rows(*catalog);
      buffers.written(*job.buffer, job.shape);
      job.written = true;
    } catch (...) {
      job.kind = Kind::failed;
      job.thrown = std::current_exception();
      filling.set_failed(job.number);
    }
  publish(job);
}

void BatchFiller::Impl::publish(Job& job) {
  if (settings.threads > 0) results.publish(job);
}

void BatchFiller::Impl::send(Message message) {
  (void)messages->try_push(std::move(message));
  if (caller_waits) messages->wake();
}

Job* BatchFiller::Impl::await(Time deadline) {
  if (settings.threads == 0) return fill_here(deadline);
  if (Job* const job = results.next_until(Time::min())) return job;
  caller_waits = true;
  messages->wake();
  Job* const job = results.next_until(deadline);
  caller_waits = false;
  return job;
}

Job* BatchFiller::Impl::fill_here(Time deadline) {
  if (Job* const job = results.next_until(Time::min())) return job;
  receive_all();
  Job* job = next_job();
  while (!job && source.awaits_epoch()) {
    auto message = messages->pop_until(deadline);
    if (!message) return nullptr;
    receive(*message);
    job = next_job();
  }
  if (!job) return nullptr;
  if (job->kind == Kind::batch) {
    job->remaining = 1;
    fill(*job, *own_filler, 0);
  }
  return results.next(*job);
}

FillResult BatchFiller::Impl::take(Job& job) {
  if (job.kind == Kind::failed) return job.error(*catalog);
  results.take(job);
  FillResult result = NoBuffer{};
  if (job.kind == Kind::epoch_end) result = EpochEnd{job.epoch};
  if (job.kind == Kind::batch) {
    job.message.id = BatchId(batches++);
    result = FilledBatch{*job.buffer, job.shape, std::move(job.message), std::move(job.failed)};
    job.buffer.reset();
    job.written = false;
  }
  if (settings.threads == 0)
    source.take_back(job);
  else
    send({.kind = Message::Kind::taken, .job = &job});
  return result;
}

BatchFiller::BatchFiller(std::shared_ptr<const Catalog> catalog, std::shared_ptr<Epochs> epochs,
                         BatchBuffers& buffers, FillerSettings settings,
                         std::shared_ptr<StreamFunction> function)
    : impl_(std::make_unique<Impl>(std::move(catalog), std::move(epochs), buffers,
                                   std::move(settings), std::move(function))) {}

BatchFiller::~BatchFiller() { stop(); }

void BatchFiller::start(PlanPosition position, bool resets) { impl_->start(position, resets); }
void BatchFiller::set_threads(std::uint32_t threads) {
  assert(!running() && threads > 0 && impl_->settings.threads > 0);
  FailedStreams failed;
  for (const FailedStreams& part : impl_->skipped) failed.insert(part.begin(), part.end());
  impl_->settings.threads = threads;
  impl_->parts = threads;
  impl_->source.set_parts(threads);
  impl_->threads.emplace(threads);
  set_failed(failed);
}
void BatchFiller::set_failed(const FailedStreams& all) { impl_->skipped.assign(impl_->parts, all); }
bool BatchFiller::stop_until(Time deadline) { return impl_->stop_until(deadline); }
bool BatchFiller::running() const { return impl_->running; }

void BatchFiller::give(std::uint32_t buffer, worker_protocol::HandedBatch spent) {
  impl_->send({.buffer = buffer, .spent = std::move(spent)});
}

std::optional<FillResult> BatchFiller::next_until(Time deadline) {
  assert(running());
  if (Job* const job = impl_->await(deadline)) return impl_->take(*job);
  return std::nullopt;
}

Duration BatchFiller::filling() const { return impl_->filling.time(); }

}  // namespace millrace::training
