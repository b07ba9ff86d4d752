// SPDX-License-Identifier: Apache-2.0
#include "checking/check_host.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/message_room.h"
#include "schemas/worker_protocol.h"
#include "service/config/toml/units.h"

namespace millrace::checking {

namespace wp = worker_protocol;

namespace {

constexpr std::size_t most_slab_messages = std::size_t{1} << 20;
// A service hands over no row of a stream with this number of pending rows.
constexpr std::ptrdiff_t most_pending = 8;
constexpr auto check_interval = std::chrono::milliseconds(250);
// If a check of the time is later than this, this process did not run: no worker was silent then.
constexpr auto suspension = std::chrono::milliseconds(500);

}  // namespace

CheckHost::CheckHost(net::io_context& home, const HubSettings& settings, SlabSupply supply,
                     LaneStats& stats)
    : settings_(settings),
      log_([this](const WorkerEvent& event) {
        if (event.warning) fail(std::string(event.what) + ": " + std::string(event.why));
      }),
      slab_messages_(home, most_slab_messages,
                     [this](std::vector<SlabMessage>& messages) { on_slab_messages(messages); }),
      maker_(settings_.welcome.shape, supply, stats,
             [this](SlabMessage message) { slab_messages_.put(std::move(message)); }),
      workers_(settings_.welcome, maker_, stats,
               [](StreamId) { return std::string_view(); }),  // only watchers need names
      timer_(home.get_executor()) {
  wait();
}

void CheckHost::disconnect(std::uint32_t worker) {
  const auto lane = std::exchange(held_[worker], {}).lane;
  if (lane) workers_.disconnect(*lane);
}

void CheckHost::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

std::size_t CheckHost::batch_bytes() const {
  const BatchShape& shape = settings_.welcome.shape;
  return shape.slab_bytes(shape.format.dtype);
}

std::string CheckHost::text_of(std::uint32_t worker) const {
  return worker == 0 ? "the worker" : "the second worker";
}

void CheckHost::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  std::optional<wp::Refused> refused;
  if (hello.watch || !expected_)
    refused = wp::Refused{"pipeline", "a check has one worker of each COMMAND"};
  else
    refused = new_workers_.add(link, hello);
  if (!refused) return;
  fail("the worker " + hello.name + " is refused: " + refused->message);
  link.refuse(*refused);
}

void CheckHost::on_slab_messages(std::vector<SlabMessage>& messages) {
  for (SlabMessage& message : messages) {
    if (auto* made = std::get_if<MadeSlabs>(&message)) {
      on_slabs_made(*made);
      continue;
    }
    const auto& report = std::get<SlabReport>(message);
    new_workers_.on_slab_report(report);
    if (const auto* lost_device = std::get_if<DeviceLost>(&report.what))
      fail("the device has failed: " + lost_device->what);
    else
      (void)workers_.on_slab_report(report);
  }
}

void CheckHost::on_slabs_made(MadeSlabs& made) {
  auto worker = new_workers_.take(made);
  const auto refused = worker ? new_workers_.refusal(*worker, made) : std::nullopt;
  if (!worker || refused || !expected_) {
    if (made.slabs) maker_.free(std::move(*made.slabs));
    if (!worker) return;
    const wp::Refused why = refused.value_or(wp::Refused{"pipeline", "a second worker"});
    fail("the worker " + worker->name + " is refused: " + why.message);
    return worker->link->refuse(why);
  }
  Held& held = held_[*std::exchange(expected_, std::nullopt)];
  const Time now = Clock::now();
  held = {.lane = LaneId{next_lane_++}, .credits = worker->credits, .last_received = now};
  workers_.attach(*held.lane, std::move(*worker), std::move(*made.slabs), now);
}

bool CheckHost::has_room(std::uint32_t worker) {
  const Held& at = held_[worker];
  return at.batches.size() < at.credits && workers_.find(*at.lane)->slabs->has_slab();
}

bool CheckHost::holds_batch() const {
  return std::ranges::any_of(held_, [](const Held& at) { return !at.batches.empty(); });
}

std::set<StreamId> CheckHost::pending_streams() const {
  std::set<StreamId> streams;
  for (const Held& at : held_)
    for (const RowId& row : at.pending) streams.insert(row.first);
  return streams;
}

bool CheckHost::must_wait(std::uint32_t worker, StreamId stream) const {
  return std::ranges::count(held_[worker].pending, stream, &RowId::first) >= most_pending;
}

// The slabs write a padding row like any other row; the message does not list it.
BatchId CheckHost::hand_over(std::uint32_t worker, Batch batch, std::uint32_t padding,
                             std::vector<wp::OpenedStream> opened) {
  Held& at = held_[worker];
  batch.id = BatchId{next_batch_++};
  batch.closed = Clock::now();
  AttachedWorker& attached = *workers_.find(*at.lane);
  const wp::HandedBatch* const written = attached.slabs->write(batch, std::move(opened));
  if (!written) return batch.id;  // the device reports why
  wp::HandedBatch message = *written;
  message.framed.resize(message.framed.size() - padding);
  if (at.batches.empty()) at.waits_since = batch.closed;
  HandedOver& handed = at.batches.emplace_back(batch.id);
  for (const wp::RowEntry& row : message.framed) handed.framed.emplace_back(row.stream, row.seq);
  for (const wp::RowEntry& row : message.marks) handed.marks.emplace_back(row.stream, row.seq);
  workers_.hand_over(attached, message);
  return batch.id;
}

std::optional<std::uint32_t> CheckHost::worker_of(const WorkerConnection& link) const {
  const auto lane = workers_.lane_of(link);
  for (std::uint32_t worker = 0; lane && worker < workers; ++worker)
    if (held_[worker].lane == lane) return worker;
  return std::nullopt;
}

void CheckHost::receive(WorkerConnection& link, wp::ToService message) noexcept {
  const auto worker = worker_of(link);
  if (!worker) return;
  Held& at = held_[*worker];
  at.last_received = Clock::now();
  if (auto* done = std::get_if<wp::Done>(&message)) return receive_done(*worker, std::move(*done));
  if (auto* late = std::get_if<wp::LateAnswer>(&message)) {
    if (at.pending.erase({late->stream, late->seq}) == 0) return;
    at.waits_since = at.last_received;
    received_.emplace_back(std::move(*late));
    return;
  }
  if (auto* send = std::get_if<wp::Send>(&message)) {  // its room is free at once
    workers_.give_room(*at.lane, {send->stream, room_of(send->message)});
    received_.emplace_back(std::move(*send));
  } else if (std::holds_alternative<wp::Unmapped>(message)) {
    workers_.leave_copies_to_worker(*at.lane, "it cannot open the slabs on its device");
  } else if (std::holds_alternative<wp::Hello>(message)) {
    protocol_error(link, "a second Hello");
  } else if (std::holds_alternative<wp::Bye>(message)) {
    if (!at.released) fail(text_of(*worker) + " left: it sent Bye");
    disconnect(*worker);
  }
}

void CheckHost::receive_done(std::uint32_t worker, wp::Done done) {
  Held& at = held_[worker];
  AttachedWorker& attached = *workers_.find(*at.lane);
  if (at.batches.empty() || at.batches.front().id != done.batch)
    return protocol_error(*attached.link, "Done for a batch that is not its oldest");
  const HandedOver batch = at.batches.front();
  const auto complete = [](std::vector<Answer>& answers, std::size_t rows) {
    const bool right = answers.empty() || answers.size() == rows;
    answers.resize(rows);
    return right;
  };
  const std::size_t answers = done.answers.size();
  if (!complete(done.answers, batch.framed.size()) ||
      !complete(done.mark_answers, batch.marks.size()))
    return protocol_error(*attached.link, "Done with " + std::to_string(answers) +
                                              " answers for a batch of " +
                                              std::to_string(batch.framed.size()) + " rows and " +
                                              std::to_string(batch.marks.size()) + " marker rows");
  at.batches.pop_front();
  at.answered = true;
  at.waits_since = Clock::now();
  const auto add_pending = [&](const std::vector<RowId>& rows, const std::vector<Answer>& given) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (given[i].kind == Answer::Kind::pending) at.pending.insert(rows[i]);
  };
  add_pending(batch.framed, done.answers);
  add_pending(batch.marks, done.mark_answers);
  attached.slabs->finish();
  received_.emplace_back(std::move(done));
}

void CheckHost::lost(WorkerConnection& link, WorkerFailure why, LossCause) noexcept {
  const auto worker = worker_of(link);
  if (!worker) return new_workers_.remove(link);
  if (!held_[*worker].released)
    fail(text_of(*worker) + (why == WorkerFailure::timeout ? " does not read its batches"
                                                           : " has closed its connection"));
  const LaneId lane = *std::exchange(held_[*worker], {}).lane;
  workers_.remove(lane, millrace::name_of(why), Clock::now());
}

void CheckHost::protocol_error(WorkerConnection& link, std::string_view what) noexcept {
  fail("the worker broke the protocol: " + std::string(what));
  link.refuse({"protocol", std::string(what)});
  lost(link, WorkerFailure::protocol);
}

void CheckHost::no_room(WorkerConnection& link, std::string_view what) noexcept {
  fail(std::string(what));
  link.refuse({"no_room", std::string(what)});
  lost(link, WorkerFailure::timeout, LossCause::service);
}

void CheckHost::stop() noexcept {
  stopped_ = true;
  for (Held& at : held_) at = {};
  workers_.disconnect_all();
  new_workers_.refuse_all({"stopping", "the check has ended"});
  timer_.cancel();
}

void CheckHost::check_times(Time now, Duration late) {
  const LaneTimeouts& limits = settings_.rule.timeouts;
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    Held& at = held_[worker];
    if (!at.lane || at.released) continue;
    at.last_received += late;
    at.waits_since += late;
    const Duration limit = at.answered ? limits.answer : limits.first_answer;
    if (now - at.last_received > limits.silence)
      fail(text_of(worker) + " has sent no heartbeat for " + readable(limits.silence));
    else if ((!at.batches.empty() || !at.pending.empty()) && now - at.waits_since > limit)
      fail(text_of(worker) + " has not answered a " +
           (at.batches.empty() ? "pending row" : "batch") + " within " + readable(limit));
  }
}

void CheckHost::wait() {
  next_check_ = Clock::now() + check_interval;
  timer_.expires_at(next_check_);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled || stopped_) return;
    const Time now = Clock::now();
    const Duration late = now - next_check_;
    check_times(now, late > suspension ? late : Duration{});
    if (now >= next_heartbeat_) {
      workers_.send_heartbeats(no_lanes_);
      next_heartbeat_ = now + wp::Heartbeats{}.interval;
    }
    wait();
  });
}

}  // namespace millrace::checking
