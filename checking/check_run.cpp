// SPDX-License-Identifier: Apache-2.0
#include "checking/check_run.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "chunker/row_layout.h"
#include "service/config/units.h"
#include "service/pipelines/pipeline.h"

namespace millrace::checking {
namespace {

namespace wp = worker_protocol;

// How long the process of a connection that has ended may take to end, so that the error is how.
constexpr Duration last_words = std::chrono::seconds(2);

// A row of size 0 with the values of another one: those from the body on, which fit where any body
// fits. No model may depend on them.
BatchRow padding_row(const BatchRow& other, std::uint32_t slots) {
  const Row& row = other.ready.row;
  const Bytes window = other.ready.window[0];
  const std::size_t left = window.size() / row.window() * row.left;
  BatchRow padding{.stream = {}, .slot = Slot{slots}, .ready = {}};
  padding.ready.window = {window.subspan(left), Bytes()};
  return padding;
}

}  // namespace

CheckRun::CheckRun(CheckSettings settings, std::span<const CheckedStream> streams,
                   const std::string& folder)
    : settings_(std::move(settings)),
      streams_(streams),
      socket_(folder + "/workers.sock"),
      devices_(settings_.gpu),
      slab_bytes_(settings_.slab_bytes),
      slab_threads_(devices_.usable().size()),
      host_(home_, hub_settings(settings_.pipeline, 1, {}),
            SlabSupply{devices_, slab_bytes_, slab_threads_}, stats_) {
  WorkerServerSettings server{.find = [this](std::string_view name) -> PipelineHost {
                                if (name == settings_.pipeline.name) return {&host_, &home_};
                                host_.fail("the worker attaches to pipeline " + std::string(name) +
                                           "; the check is of pipeline " + settings_.pipeline.name +
                                           ": give --config or --pipeline, or change the worker's");
                                return {};
                              },
                              .log = host_.log()};
  server_.emplace(home_.get_executor(), socket_, std::move(server));
  serving_.emplace(home_.get_executor(), [this] { return server_->serve(); });
  serving_->start();
}

CheckRun::~CheckRun() {
  for (auto& process : processes_) process.reset();
  host_.stop();
  serving_.reset();
  home_.poll();  // coroutines end before the objects that they use
}

void CheckRun::stop() {
  net::post(home_, [this] { host_.fail("stopped by a signal"); });
}

template <class Condition>
void CheckRun::wait_until(Condition condition) {
  while (!condition()) {
    home_.run_one();  // at least the host's timer
    check();
  }
}

void CheckRun::check() {
  if (!host_.failure().empty()) report_failure();
  for (auto& process : processes_)
    if (process && process->ended())
      throw std::runtime_error("the command " + *process->ended() + " before the end of the check");
}

// A process that ends closes its connection first.
void CheckRun::report_failure() {
  std::string why = host_.failure();
  for (std::uint32_t worker = 0; worker < CheckHost::workers; ++worker)
    if (attached_[worker] && !host_.attached(worker) &&
        !runs_within(worker, std::min(last_words, settings_.end_limit)))
      why += "; the command " + *processes_[worker]->ended();
  throw std::runtime_error(why);
}

bool CheckRun::runs_within(std::uint32_t worker, Duration limit) {
  const Time until = Clock::now() + limit;
  while (!processes_[worker]->ended() && Clock::now() < until)
    home_.run_one_until(std::min(until, Clock::now() + std::chrono::milliseconds(20)));
  return !processes_[worker]->ended();
}

void CheckRun::start(std::uint32_t worker) {
  host_.expect(worker);
  processes_[worker].emplace(settings_.command, "unix:" + socket_);
  const Time until = Clock::now() + settings_.attach_limit;
  wait_until([&] {
    if (Clock::now() > until)
      throw std::runtime_error(
          "the command has not attached a worker to $MILLRACE_WORKERS within " +
          readable(settings_.attach_limit));
    return host_.attached(worker);
  });
  attached_[worker] = true;
}

void CheckRun::end(std::uint32_t worker) {
  auto& process = processes_[worker];
  if (!process) return;
  host_.release(worker);
  process->signal(SIGTERM);
  if (runs_within(worker, settings_.end_limit))
    throw std::runtime_error("the command has not ended within " + readable(settings_.end_limit) +
                             " after SIGTERM");
  process.reset();
  attached_[worker] = false;
  host_.disconnect(worker);
}

void CheckRun::end() {
  for (std::uint32_t worker = 0; worker < CheckHost::workers; ++worker) end(worker);
}

StageAnswers CheckRun::play(const Stage& stage, const std::function<void(std::size_t)>& progress) {
  StageAnswers answers(streams_.size() * copies_of(stage));
  for (std::size_t i = 0; i < answers.size(); ++i)
    answers[i].resize(streams_[i % streams_.size()].rows().size());
  for (std::size_t i = 0; i < stage.batches.size(); ++i) {
    const PlannedBatch& batch = stage.batches[i];
    if (batch.alone || batch.fresh) wait_until([&] { return host_.is_idle(); });
    if (batch.fresh) end(batch.worker);
    if (!processes_[batch.worker]) start(batch.worker);
    wait_until([&] { return host_.has_room(batch.worker) && !must_wait(batch); });
    hand_over(batch);
    collect(answers);
    progress(i + 1);
  }
  wait_until([&] { return host_.is_idle(); });
  collect(answers);
  return answers;
}

bool CheckRun::must_wait(const PlannedBatch& batch) const {
  const auto any = [&](const std::vector<PlannedRow>& rows) {
    return std::ranges::any_of(
        rows, [&](const PlannedRow& row) { return host_.must_wait(batch.worker, row.id); });
  };
  return any(batch.framed) || any(batch.marks);
}

void CheckRun::hand_over(const PlannedBatch& planned) {
  Batch batch;
  std::vector<wp::OpenedStream> opened;
  std::uint32_t columns = 0;
  const auto add = [&](std::vector<BatchRow>& into, const PlannedRow& row) {
    const CheckedStream& stream = streams_[row.stream];
    const CheckedRow& cut = stream.rows()[row.row];
    ReadyRow& ready = into.emplace_back(BatchRow{row.id, Slot{row.slot}, {}}).ready;
    ready.row = cut.row;
    if (cut.row.has_frames()) ready.window = {stream.window(cut), Bytes()};
    answers_of_[row.id] = answers_index(row, streams_.size());
    if (row.opens) opened.push_back({row.id, row.slot, stream.name(), stream.options()});
  };
  const BatchRule& rule = settings_.pipeline.batch;
  for (const PlannedRow& row : planned.framed) {
    add(batch.framed, row);
    const Row& cut = batch.framed.back().ready.row;
    columns = std::max(columns, rule.columns.needed(cut.left, cut.size, cut.right));
  }
  for (const PlannedRow& row : planned.marks) add(batch.marks, row);
  batch.rows = planned.rows;
  batch.width = padded_length(rule.width_buckets, columns);
  for (std::uint32_t i = 0; i < planned.padding(); ++i)
    batch.framed.push_back(padding_row(batch.framed[i % planned.framed.size()], rule.slots));
  handed_[host_.hand_over(planned.worker, std::move(batch), planned.padding(), std::move(opened))] =
      &planned;
}

void CheckRun::collect(StageAnswers& into) {
  for (wp::Done& done : host_.take_done()) {
    const PlannedBatch& batch = *handed_.extract(done.batch).mapped();
    const auto take = [&](const std::vector<PlannedRow>& rows, std::vector<Answer>& answers) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        into[answers_index(rows[i], streams_.size())][rows[i].row] = std::move(answers[i]);
    };
    take(batch.framed, done.answers);
    take(batch.marks, done.mark_answers);
  }
  for (wp::LateAnswer& late : host_.take_late()) {
    const auto found = answers_of_.find(late.stream);
    if (found == answers_of_.end() || late.seq >= into[found->second].size()) continue;
    Answer& answer = into[found->second][late.seq];
    if (answer.kind != Answer::Kind::pending) continue;
    late.answer.endpoint |= answer.endpoint;
    answer = std::move(late.answer);
  }
}

}  // namespace millrace::checking
