// SPDX-License-Identifier: Apache-2.0
#include "checking/check_run.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "service/config/toml/units.h"
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

PlayedStage CheckRun::play(const Stage& stage, const std::function<void(std::size_t)>& progress) {
  answers_of_.clear();  // messages to streams of a former stage do not count
  PlayedStage played;
  played.answers.resize(streams_.size() * copies_of(stage));
  played.messages.resize(played.answers.size());
  for (std::size_t i = 0; i < played.answers.size(); ++i)
    played.answers[i].resize(streams_[i % streams_.size()].rows().size());
  for (std::size_t i = 0; i < stage.batches.size(); ++i) {
    const PlannedBatch& batch = stage.batches[i];
    if (batch.alone || batch.fresh) settle();
    if (batch.fresh) end(batch.worker);
    if (!processes_[batch.worker]) start(batch.worker);
    wait_until([&] { return host_.has_room(batch.worker) && !must_wait(batch); });
    hand_over(batch);
    collect(played);
    progress(i + 1);
  }
  here_.clear();
  settle();
  collect(played);
  return played;
}

// Ends the streams that have left. Then no worker holds a batch, or a pending row of a stream that
// is not there.
void CheckRun::settle() {
  wait_until([&] { return !host_.holds_batch(); });
  for (const auto& [batch, row] : std::exchange(left_, {})) end_stream(*batch, row);
  wait_until([&] {
    return !host_.holds_batch() && std::ranges::includes(here_, host_.pending_streams());
  });
}

// A slot becomes free by an END row, with which a worker answers what is pending. The answer to it
// does not count.
void CheckRun::end_stream(const PlannedBatch& last, const PlannedRow& row) {
  const Row& before = streams_[row.stream].rows()[row.row].row;
  Batch batch;
  batch.width = last.width;
  Row& end = batch.marks.emplace_back(BatchRow{row.id, Slot{row.slot}, {}}).ready.row;
  end.seq = before.seq + 1;
  end.begin = before.end();
  end.flags = flag::last | flag::end;
  wait_until([&] { return host_.has_room(last.worker); });
  handed_[host_.hand_over(last.worker, std::move(batch), 0, {})] = nullptr;
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
  const auto add = [&](std::vector<BatchRow>& into, const PlannedRow& row) {
    const CheckedStream& stream = streams_[row.stream];
    const CheckedRow& cut = stream.rows()[row.row];
    ReadyRow& ready = into.emplace_back(BatchRow{row.id, Slot{row.slot}, {}}).ready;
    ready.row = cut.row;
    if (cut.row.has_frames()) ready.window = {stream.window(cut), Bytes()};
    if (!cut.messages.empty()) ready.posts = &cut.messages;
    answers_of_[row.id] = answers_index(row, streams_.size());
    if (row.opens)
      opened.push_back({row.id, row.slot, stream.name(), stream.options_before(row.row)});
    if (row.opens) here_.insert(row.id);
    if (row.leaves) left_.emplace_back(&planned, row);
    if (row.leaves || cut.row.is(flag::end)) here_.erase(row.id);
  };
  for (const PlannedRow& row : planned.framed) add(batch.framed, row);
  for (const PlannedRow& row : planned.marks) add(batch.marks, row);
  batch.rows = planned.rows;
  batch.width = planned.width;
  for (std::uint32_t i = 0; i < planned.padding(); ++i)
    batch.framed.push_back(
        padding_row(batch.framed[i % planned.framed.size()], settings_.pipeline.batch.slots));
  handed_[host_.hand_over(planned.worker, std::move(batch), planned.padding(), std::move(opened))] =
      &planned;
}

void CheckRun::collect(PlayedStage& into) {
  const auto place = [&](const PlannedRow& row) -> Answer& {
    return into.answers[answers_index(row, streams_.size())][row.row];
  };
  for (wp::ToService& message : host_.take_received()) {
    if (auto* done = std::get_if<wp::Done>(&message)) {
      const PlannedBatch* batch = handed_.extract(done->batch).mapped();
      for (std::size_t i = 0; batch && i < done->answers.size(); ++i)
        place(batch->framed[i]) = std::move(done->answers[i]);
      for (std::size_t i = 0; batch && i < done->mark_answers.size(); ++i)
        place(batch->marks[i]) = std::move(done->mark_answers[i]);
    } else if (auto* late = std::get_if<wp::LateAnswer>(&message)) {
      take(*late, into);
    } else if (auto* send = std::get_if<wp::Send>(&message)) {
      const auto found = answers_of_.find(send->stream);
      if (found != answers_of_.end())
        into.messages[found->second].push_back(std::move(send->message));
    }
  }
}

void CheckRun::take(wp::LateAnswer& late, PlayedStage& into) {
  const auto found = answers_of_.find(late.stream);
  if (found == answers_of_.end() || late.seq >= into.answers[found->second].size()) return;
  Answer& answer = into.answers[found->second][late.seq];
  if (answer.kind != Answer::Kind::pending) return;
  late.answer.endpoint |= answer.endpoint;
  answer = std::move(late.answer);
}

}  // namespace millrace::checking
