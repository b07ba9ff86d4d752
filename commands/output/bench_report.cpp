// SPDX-License-Identifier: Apache-2.0
#include "commands/output/bench_report.h"

#include <array>
#include <boost/json/array.hpp>
#include <iomanip>
#include <ostream>
#include <string>
#include <string_view>

#include "load/evaluation.h"
#include "service/config/toml/units.h"

namespace millrace {

namespace json = boost::json;
using load::Histogram;
using load::LoadReport;

namespace {

struct Quantile {
  std::string_view name;
  double part;
};
constexpr std::array quantiles{Quantile{"p50", 0.5}, Quantile{"p90", 0.9}, Quantile{"p99", 0.99},
                               Quantile{"p99.9", 0.999}};

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

json::value times_of(const Histogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  json::object times{{"count", histogram.count()}};
  for (const auto& [name, part] : quantiles) times[name] = microseconds(histogram.quantile(part));
  times["max"] = microseconds(histogram.greatest());
  return times;
}

json::value server_of(const LoadReport& report) {
  const auto bytes = stream_bytes(report);
  if (!bytes) return nullptr;
  const load::Usage& last = *report.counted.back().server;
  return json::object{
      {"cpu_us_per_packet", microseconds(cpu_cost(report).server.value_or(Duration{}))},
      {"bytes", last.bytes},
      {"bytes_per_idle_stream", bytes->idle},
      {"bytes_per_stream", bytes->streaming},
      {"descriptors", last.descriptors}};
}

json::value worker_of(const LoadReport& report) {
  if (!report.worker) return nullptr;
  const auto& worker = *report.worker;
  return json::object{{"device", report.worker_device},
                      {"batches", worker.batches},
                      {"rows", worker.framed},
                      {"damaged", worker.damaged},
                      {"repeated", worker.repeated},
                      {"unknown", worker.unknown},
                      {"ended", worker.ended},
                      {"unended", worker.unended},
                      {"shed_frames", worker.shed},
                      {"messages", worker.messages},
                      {"unsent_messages", worker.unsent},
                      {"cpu_us_per_packet", microseconds(cpu_cost(report).worker)}};
}

json::array windows_of(const LoadReport& report) {
  json::array windows;
  for (std::size_t i = 0; i + 1 < report.counted.size(); ++i) {
    json::object window{{"lateness_us", times_of(report.clients.lateness.each()[i])},
                        {"result_us", times_of(report.clients.results.each()[i])}};
    if (report.worker) window["row_us"] = times_of(report.worker->rows.each()[i]);
    if (const auto& server = report.counted[i + 1].server) {
      window["server_bytes"] = server->bytes;
      window["server_descriptors"] = server->descriptors;
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

void print_times(std::ostream& out, std::string_view name, const Histogram& times) {
  if (times.count() == 0) return;
  out << std::left << std::setw(34) << name << std::right;
  for (const auto& quantile : quantiles)
    out << std::setw(9) << microseconds(times.quantile(quantile.part));
  out << std::setw(9) << microseconds(times.greatest()) << '\n';
}

void print_counts(std::ostream& out, const LoadReport& report) {
  const auto& clients = report.clients;
  out << clients.opened << " streams opened, " << clients.ended << " ended, "
      << clients.disconnected << " vanished, " << clients.broken << " broken";
  if (!clients.why.empty()) out << " (" << clients.why << ")";
  for (const auto& [why, count] : clients.refused) out << ", " << count << " refused: " << why;
  if (clients.cuts + clients.resumed > 0)
    out << '\n'
        << clients.cuts << " connections cut; streams resumed with their state "
        << clients.resumed - clients.reopened << ", without " << clients.reopened;
  out << '\n' << clients.packets << " packets sent, " << clients.answered << " results";
  if (clients.failed > 0) out << " (" << clients.failed << " of them errors)";
  out << "; frames lost " << lost_frames(report) << ", shed " << clients.shed;
  if (clients.answered > 0) out << ", rows unanswered " << unanswered_rows(report);
  out << "; results duplicate or out of order " << clients.repeated << ", of another row "
      << clients.wrong << '\n';
  if (clients.commits > 0)
    out << clients.commits << " commits, " << clients.finished << " finished\n";
  if (const auto& worker = report.worker)
    out << worker->framed << " rows in " << worker->batches << " batches on "
        << report.worker_device << "; duplicate or out of order " << worker->repeated
        << ", damaged " << worker->damaged << ", unknown " << worker->unknown
        << ", streams without an end " << worker->unended << '\n';
  if (const auto& worker = report.worker; worker && worker->messages + worker->unsent > 0)
    out << worker->messages << " messages of the worker, " << clients.messages
        << " received; without room " << worker->unsent << '\n';
}

void print_windows(std::ostream& out, const LoadReport& report) {
  const auto parts = report.clients.results.each().size();
  for (std::size_t i = 0; parts > 1 && i + 1 < report.counted.size(); ++i) {
    const std::string part = "part " + std::to_string(i + 1);
    if (report.worker) print_times(out, part + ", worker", report.worker->rows.each()[i]);
    print_times(out, part + ", client", report.clients.results.each()[i]);
    if (const auto& server = report.counted[i + 1].server)
      out << part << ", server: " << rounded_bytes(server->bytes) << ", " << server->descriptors
          << " descriptors\n";
  }
}

void print_costs(std::ostream& out, const LoadReport& report) {
  const load::CpuCost cpu = cpu_cost(report);
  out << "CPU per packet, us: clients " << microseconds(cpu.clients);
  if (report.worker) out << ", worker " << microseconds(cpu.worker);
  if (cpu.server) out << ", server " << microseconds(*cpu.server);
  out << '\n';
  if (const auto bytes = stream_bytes(report))
    out << std::setprecision(0) << "server: " << bytes->idle << " B per idle stream, "
        << bytes->streaming << " B per stream, "
        << rounded_bytes(report.counted.back().server->bytes) << " in all\n";
}

}  // namespace

json::object to_json(const LoadReport& report) {
  const auto& clients = report.clients;
  json::object refused;
  for (const auto& [why, count] : clients.refused) refused[why] = count;
  json::object all{{"streams", report.plan.streams},
                   {"whole", is_whole(report)},
                   {"generator_late", is_generator_late(report)},
                   {"opened", clients.opened},
                   {"ended", clients.ended},
                   {"vanished", clients.disconnected},
                   {"broken", clients.broken},
                   {"why", clients.why},
                   {"refused", std::move(refused)},
                   {"cuts", clients.cuts},
                   {"resumed", clients.resumed - clients.reopened},
                   {"reopened", clients.reopened},
                   {"packets", clients.packets},
                   {"results", clients.answered},
                   {"messages", clients.messages},
                   {"failed", clients.failed},
                   {"repeated", clients.repeated},
                   {"wrong", clients.wrong},
                   {"lost_frames", lost_frames(report)},
                   {"shed_frames", clients.shed},
                   {"unanswered_rows", unanswered_rows(report)},
                   {"commits", clients.commits},
                   {"finished", clients.finished},
                   {"cpu_us_per_packet", microseconds(cpu_cost(report).clients)},
                   {"lateness_us", times_of(clients.lateness.all())},
                   {"result_us", times_of(clients.results.all())},
                   {"text_us", times_of(clients.texts.all())},
                   {"commit_to_final_us", times_of(clients.finals.all())},
                   {"cut_to_resumed_us", times_of(clients.returns.all())},
                   {"cut_to_result_us", times_of(clients.recoveries.all())}};
  if (report.worker) {
    all["row_us"] = times_of(report.worker->rows.all());
    all["vanished_us"] = times_of(abort_times(report));
    all["burst_us"] = times_of(burst_times(report));
  }
  all["worker"] = worker_of(report);
  all["server"] = server_of(report);
  if (clients.results.each().size() > 1) all["windows"] = windows_of(report);
  return all;
}

void print(std::ostream& out, const LoadReport& report) {
  out << std::fixed << std::setprecision(0);
  print_counts(out, report);
  out << std::left << std::setw(34) << "us, since the packet was due" << std::right;
  for (const auto& quantile : quantiles) out << std::setw(9) << quantile.name;
  out << std::setw(9) << "max" << '\n';
  print_times(out, "send delay of the generator itself", report.clients.lateness.all());
  if (report.worker) print_times(out, "taken by the worker", report.worker->rows.all());
  print_times(out, "result read by the client", report.clients.results.all());
  print_times(out, "text, since the newest packet", report.clients.texts.all());
  print_times(out, "commit to final", report.clients.finals.all());
  print_times(out, "cut to stream resumed", report.clients.returns.all());
  print_times(out, "cut to next result", report.clients.recoveries.all());
  if (report.worker) {
    print_times(out, "last row of a step", burst_times(report));
    print_times(out, "ABORT, since the client vanished", abort_times(report));
  }
  print_windows(out, report);
  if (is_generator_late(report))
    out << "the generator was late: these figures measure it, not the service; use more cores, "
           "--threads, or fewer streams\n";
  out << std::setprecision(1);
  print_costs(out, report);
}

}  // namespace millrace
