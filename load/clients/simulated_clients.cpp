// SPDX-License-Identifier: Apache-2.0
#include "load/clients/simulated_clients.h"

#include <algorithm>
#include <utility>

namespace millrace::load {

namespace {

using namespace std::chrono_literals;

// A listen backlog holds several times this number.
constexpr std::size_t max_opening = 256;
// A new stream is opened this long before its first packet is due.
constexpr Duration head_start = 20ms;
constexpr Duration refused_pause = 1s;
// Time without a stream that is opened or refused.
constexpr Duration opening_timeout = 10s;

}  // namespace

SimulatedClients::SimulatedClients(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
                                   LoadTransport& transport)
    : run_(run),
      offset_(offset),
      stride_(stride),
      transport_(transport),
      clients_((run.schedule.plan().streams - offset + stride - 1) / stride),
      cuts_(run.schedule, offset, stride),
      to_open_(offset),
      packet_(run.content.packet_bytes()),
      outcome_(run.schedule) {}

bool SimulatedClients::continue_opening(Time now) {
  const std::uint32_t streams = run_.schedule.plan().streams;
  if (progress_ == Time::max()) progress_ = now;
  if (now - progress_ > opening_timeout) refuse_pending(now);
  for (; to_open_ < streams && opening_ < max_opening; to_open_ += stride_) open(to_open_, 0);
  return to_open_ < streams || opening_ > 0;
}

void SimulatedClients::refuse_pending(Time now) {
  for (std::uint32_t client = offset_; client < to_open_; client += stride_) {
    if (at(client).state != State::opening) continue;
    transport_.disconnect(client);
    refused(client, "no answer", now);
  }
}

std::uint64_t SimulatedClients::sent(const Client& client) const {
  return (client.next - client.first) * run_.content.packet_frames();
}

void SimulatedClients::open(std::uint32_t client, std::uint64_t first) {
  const std::uint64_t packets = run_.schedule.packets_of_life(client, first);
  at(client) = {.state = State::opening,
                .first = first,
                .next = first,
                .last = first + packets,
                .committed = first};
  ++opening_;
  ++live_;
  transport_.open(client, stream_name(run_.name, {client, first}));
}

void SimulatedClients::opened(std::uint32_t client, Time now) {
  --opening_;
  progress_ = now;
  ++outcome_.opened;
  at(client).state = State::open;
  at(client).opened = now;
  // The due time is unknown before the schedule starts: the first advance() determines it.
  turns_.push({Time::min(), client});
}

void SimulatedClients::refused(std::uint32_t client, std::string_view why, Time now) {
  --opening_;
  --live_;
  progress_ = now;
  ++outcome_.refused[std::string(why)];
  at(client).state = State::none;
  if (run_.schedule.plan().life) turns_.push({now + refused_pause, client});
}

std::optional<Time> SimulatedClients::advance(Time now) {
  while (!turns_.empty() && turns_.top().first <= now) {
    const std::uint32_t client = turns_.top().second;
    turns_.pop();
    run_turn(client, now);
  }
  run_cuts(now);
  const Time last = run_.schedule.last();
  if (live_ == 0 && now >= last) return std::nullopt;
  if (!turns_.empty()) return std::min(turns_.top().first, cuts_.next());
  return std::min(now < last ? last : now + refused_pause, cuts_.next());
}

void SimulatedClients::run_cuts(Time now) {
  while (const auto due = cuts_.take(now)) {
    Client& it = at(due->client);
    if (it.state != State::open && it.state != State::ending) continue;
    if (due->cut.part && it.state == State::open)
      it.cut = due->cut;
    else if (transport_.cut(due->client, {.resets = due->cut.resets}))
      count_cut(it, now);
  }
}

void SimulatedClients::count_cut(Client& client, Time now) {
  ++outcome_.cuts;
  // Until the stream is back, a further cut is part of the same time.
  if (!client.returns_from) client.returns_from = now;
  if (!client.recovers_from) client.recovers_from = now;
}

void SimulatedClients::run_turn(std::uint32_t client, Time now) {
  Client& it = at(client);
  if (it.state == State::none) {
    if (!run_.schedule.plan().life)
      return;  // its stream is broken or was refused, and there are no further ones
    const std::uint64_t first = run_.schedule.first_from(client, now + head_start);
    if (run_.schedule.due(client, first) < run_.schedule.last()) open(client, first);
    return;
  }
  if (it.state != State::open) return;
  const Time due = run_.schedule.due(client, it.next);
  if (due > now) return turns_.push({due, client});
  run_.content.write(client, it.next, packet_);
  // Lateness excludes waits for the service: for it to open the stream, or to accept more.
  if (!std::exchange(it.late, true) && due >= it.opened) outcome_.lateness.add(due, Clock::now());
  const bool cuts = it.cut && transport_.cut(client, *it.cut);
  if (!transport_.send(client, packet_)) return;  // writable() or resumed() follows
  if (cuts) count_cut(it, Clock::now());
  if (cuts) it.cut.reset();
  it.late = false;
  ++outcome_.packets;
  ++it.next;
  const Time next = run_.schedule.due(client, it.next);
  if (it.next == it.last || next >= run_.schedule.last()) return finish(client, due, now);
  // The clients commit after different packets, so that the commits are spread evenly.
  if (run_.commit > 0 && it.next - it.committed >= run_.commit &&
      (it.next + client) % run_.commit == 0)
    commit(client, due);
  turns_.push({next, client});
}

void SimulatedClients::commit(std::uint32_t client, Time due) {
  Client& it = at(client);
  it.committed = it.next;
  ++it.unfinished;
  ++outcome_.commits;
  transport_.commit(client, due);
}

void SimulatedClients::finish(std::uint32_t client, Time due, Time now) {
  Client& it = at(client);
  if (it.next == it.last && run_.schedule.disconnects(client, it.first)) {
    if (run_.schedule.counts(now)) outcome_.disconnects[stream_of(client)] = Clock::now();
    transport_.disconnect(client);
    ++outcome_.disconnected;
    return over(client, now);
  }
  if (run_.commit > 0) commit(client, due);
  it.state = State::ending;
  transport_.end(client);
}

void SimulatedClients::over(std::uint32_t client, Time now) {
  if (at(client).state == State::opening) --opening_;
  at(client).state = State::none;
  --live_;
  if (run_.schedule.plan().life && now < run_.schedule.last()) turns_.push({now, client});
}

void SimulatedClients::writable(std::uint32_t client) {
  if (at(client).state == State::open) turns_.push({Time::min(), client});
}

void SimulatedClients::received(std::uint32_t client, const ReceivedResult& result, Time now) {
  Client& it = at(client);
  ++outcome_.answered;
  if (result.failed) ++outcome_.failed;
  if (result.seq < it.seq || result.begin < it.begin) {
    ++outcome_.repeated;
    return;
  }
  if (result.end < result.begin || result.end > sent(it)) {
    ++outcome_.wrong;
    return;
  }
  if (run_.answered && !result.failed) {
    if (run_.transcribed)
      write_word(answer_, stream_of(client), result.begin, result.end);
    else
      write_answer(answer_, stream_of(client), result.begin);
    if (result.data != answer_) ++outcome_.wrong;
  }
  it.seq = result.seq + 1;
  it.begin = result.begin;
  if (it.recovers_from) outcome_.recoveries.add(*std::exchange(it.recovers_from, {}), now);
  it.gap = it.gap || result.gap;
  if (result.end == result.begin) return;  // a marker row has no due time
  ++it.begin;                              // bodies may overlap, but do not begin at the same frame
  ++it.answered;
  const std::uint64_t packet = it.first + (result.end - 1) / run_.content.packet_frames();
  outcome_.results.add(run_.schedule.due(client, packet), now);
}

// Only the first text that covers a packet counts: later ones repeat it.
void SimulatedClients::text(std::uint32_t client, std::optional<double> end, Time now) {
  Client& it = at(client);
  ++outcome_.answered;
  const std::uint64_t sent = it.next - it.first;
  if (sent == 0) return;
  if (!end) return outcome_.texts.add(run_.schedule.due(client, it.next - 1), now);
  const double packets = *end / std::chrono::duration<double>(run_.schedule.plan().packet).count();
  // Protocols round positions to milliseconds: a packet counts once it is almost covered.
  const auto covered = std::min(sent, static_cast<std::uint64_t>(std::max(0.0, packets + 0.1)));
  if (covered <= it.covered) return;
  it.covered = covered;
  outcome_.results.add(run_.schedule.due(client, it.first + covered - 1), now);
}

void SimulatedClients::finished(std::uint32_t client, Time due, bool failed, Time now) {
  if (failed) ++outcome_.failed;
  ++outcome_.finished;
  --at(client).unfinished;
  outcome_.finals.add(due, now);
}

void SimulatedClients::message(std::uint32_t client, std::uint64_t number) {
  ++outcome_.messages;
  if (number != at(client).messages++) ++outcome_.repeated;
}

void SimulatedClients::rejected(std::uint32_t client, std::uint64_t frames) {
  at(client).rejected += frames;
  outcome_.shed += frames;
}

void SimulatedClients::closed(std::uint32_t client, std::optional<StreamTotals> totals, Time now) {
  Client& it = at(client);
  if (it.state != State::ending) return broken(client, "closed before its end", now);
  ++outcome_.ended;
  outcome_.frames_ended += sent(it);
  outcome_.unfinished += it.unfinished;
  if (totals) add_totals(it, *totals);
  over(client, now);
}

void SimulatedClients::add_totals(Client& client, const StreamTotals& totals) {
  const std::uint64_t sent = this->sent(client);
  const std::uint64_t wanted = sent - std::min(sent, client.rejected);
  const std::uint64_t had = std::min(wanted, totals.frames);
  // Results do not report the length of a gap.
  (client.gap ? outcome_.shed : outcome_.lost) += wanted - had;
  outcome_.lost += totals.frames - had;
  outcome_.unanswered += totals.rows - std::min(totals.rows, client.answered);
}

void SimulatedClients::resumed(std::uint32_t client, bool kept, Time now) {
  Client& it = at(client);
  ++outcome_.resumed;
  if (!kept) ++outcome_.reopened;
  if (it.returns_from) outcome_.returns.add(*std::exchange(it.returns_from, {}), now);
  if (it.late) writable(client);
}

void SimulatedClients::broken(std::uint32_t client, std::string_view why, Time now) {
  ++outcome_.broken;
  if (outcome_.why.empty()) outcome_.why = why;
  over(client, now);
}

void SimulatedClients::abort_remaining(Time now) {
  for (std::uint32_t client = offset_; client < to_open_; client += stride_) {
    if (at(client).state == State::none) continue;
    transport_.disconnect(client);
    broken(client, "not closed in time", now);
  }
}

}  // namespace millrace::load
