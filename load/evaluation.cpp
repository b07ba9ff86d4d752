// SPDX-License-Identifier: Apache-2.0
#include "load/evaluation.h"

#include <algorithm>
#include <chrono>

namespace millrace::load {

namespace {

std::uint64_t missing(std::uint64_t sent, std::uint64_t seen) {
  return sent - std::min(sent, seen);
}

Duration each(Duration time, std::uint64_t count) {
  return count == 0 ? Duration{} : time / static_cast<Duration::rep>(count);
}

}  // namespace

bool is_whole(const LoadReport& report) {
  const ClientOutcome& clients = report.clients;
  if (!clients.refused.empty() || lost_frames(report) > 0 ||
      clients.broken + clients.shed + clients.repeated + clients.failed + clients.wrong > 0)
    return false;
  if (report.answered && unanswered_rows(report) > 0) return false;
  if (report.spoken != Spoken::deepgram && clients.unfinished > 0) return false;
  if (!report.worker) return true;
  const WorkerOutcome& worker = *report.worker;
  if (clients.disconnected == 0 && clients.messages != worker.messages) return false;
  return worker.ended == clients.ended &&
         worker.repeated + worker.damaged + worker.shed + worker.unknown + worker.unended == 0;
}

std::uint64_t lost_frames(const LoadReport& report) {
  const ClientOutcome& clients = report.clients;
  if (!report.worker) return clients.lost;
  const WorkerOutcome& worker = *report.worker;
  return std::max(missing(clients.lost, worker.shed),
                  worker.lost + missing(clients.frames_ended, worker.frames_ended));
}

std::uint64_t unanswered_rows(const LoadReport& report) {
  const ClientOutcome& clients = report.clients;
  const bool has_totals = report.spoken == Spoken::millrace;
  if (has_totals || !report.worker || clients.disconnected > 0) return clients.unanswered;
  const std::uint64_t unread = report.spoken == Spoken::openai ? report.worker->closing : 0;
  return missing(report.worker->framed - unread, clients.answered);
}

Histogram abort_times(const LoadReport& report) {
  Histogram times;
  if (!report.worker) return times;
  for (const auto& [stream, at] : report.clients.disconnects)
    if (const auto abort = report.worker->aborts.find(stream); abort != report.worker->aborts.end())
      times.add(abort->second - at);
  return times;
}

Histogram burst_times(const LoadReport& report) {
  Histogram times;
  if (!report.worker) return times;
  for (const auto& [packet, time] : report.worker->bursts) times.add(time);
  return times;
}

std::optional<Duration> p99_of(const LoadReport& report) {
  Histogram times = report.clients.results.all();
  if (times.count() == 0) times = report.clients.finals.all();
  if (times.count() == 0 && report.worker) times = report.worker->rows.all();
  if (times.count() == 0) return std::nullopt;
  return times.quantile(0.99);
}

bool is_generator_late(const LoadReport& report) {
  const auto p99 = p99_of(report);
  const Histogram delays = report.clients.lateness.all();
  if (!p99 || delays.count() == 0) return false;
  const Duration late = delays.quantile(0.99);
  return late > std::chrono::milliseconds(1) && 2 * late > *p99;
}

CpuCost cpu_cost(const LoadReport& report) {
  if (report.counted.size() < 2) return {};
  const Sample &from = report.counted.front(), &to = report.counted.back();
  const std::uint64_t packets = to.packets - from.packets, rows = to.rows - from.rows;
  CpuCost cpu_cost{.clients = each(to.clients - from.clients, packets),
                   .worker = each(to.worker - from.worker, rows)};
  if (from.server && to.server)
    cpu_cost.server = each(to.server->cpu - from.server->cpu, report.worker ? rows : packets);
  return cpu_cost;
}

std::optional<StreamBytes> stream_bytes(const LoadReport& report) {
  if (!report.before.server || !report.idle.server || report.counted.empty() ||
      !report.counted.back().server)
    return std::nullopt;
  const auto grown = [&](const Sample& sample) {
    return static_cast<double>(missing(sample.server->bytes, report.before.server->bytes)) /
           report.plan.streams;
  };
  return StreamBytes{grown(report.idle), grown(report.counted.back())};
}

}  // namespace millrace::load
