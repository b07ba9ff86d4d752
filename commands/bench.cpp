// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <exception>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "commands/bench_options.h"
#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "commands/output/bench_report.h"
#include "load/evaluation.h"
#include "load/load_run.h"
#include "service/config/toml/units.h"

namespace millrace {
namespace {

using load::LoadPlan;
using load::LoadReport;
using load::LoadTarget;

struct BenchArguments {
  BenchOptions load;
  std::string ramp;
  bool json = false;
};

class Bench {
 public:
  Bench(const BenchArguments& arguments, Console& console)
      : console_(console),
        plan_(arguments.load.plan()),
        target_(arguments.load.target(plan_)),
        json_(arguments.json) {}

  void run_once() {
    load::Schedule schedule(plan_);
    const LoadReport report = run(schedule);
    if (!is_whole(report)) console_.exit_code = 1;
  }

  // Finds the largest number of streams that meets the bound. Doubles the number while it meets it;
  // then halves the distance to the smallest number that does not, down to a twentieth. A run that
  // ends with an error does not meet the bound.
  void ramp(Duration bound) {
    std::uint32_t good_streams = 0, bad_streams = 0;
    for (std::uint32_t next = plan_.streams; next > good_streams;) {
      plan_.streams = next;
      bool good = false;
      try {
        good = meets_bound(bound);
      } catch (const std::exception& error) {
        if (good_streams == 0) throw;
        console_.err << "millrace bench: " << next << " streams: " << error.what() << std::endl;
      }
      (good ? good_streams : bad_streams) = next;
      if (bad_streams == 0)
        next = 2 * good_streams;
      else
        next = bad_streams - good_streams > std::max(1u, bad_streams / 20)
                   ? good_streams + (bad_streams - good_streams) / 2
                   : good_streams;
    }
    if (json_)
      console_.out << R"({"most_streams":)" << good_streams << "}" << std::endl;
    else
      console_.out << "most streams with p99 <= " << readable(bound) << ": " << good_streams
                   << std::endl;
    if (good_streams == 0) console_.exit_code = 1;
  }

 private:
  bool meets_bound(Duration bound) {
    load::Schedule schedule(plan_);
    const LoadReport report = run(schedule);
    const auto p99 = p99_of(report);
    if (!p99)
      throw std::runtime_error(
          "--ramp: no result to measure; attach a worker that answers, or use --worker");
    return is_whole(report) && *p99 <= bound;
  }

  LoadReport run(load::Schedule& schedule) {
    LoadReport report = run_load(schedule, target_);
    if (json_)
      console_.out << boost::json::serialize(to_json(report)) << std::endl;
    else
      print(console_.out, report);
    console_.out << std::flush;
    if (report.clients.opened == 0) throw std::runtime_error("no stream was opened");
    return report;
  }

  Console& console_;
  LoadPlan plan_;
  const LoadTarget target_;
  const bool json_;
};

// The figures of earlier runs have been printed.
[[noreturn]] void exit_interrupted() {
  constexpr std::string_view line =
      "millrace bench: interrupted: the run in progress is not reported\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(130);
}

void bench(const BenchArguments& arguments, Console& console) {
  const BlockedSignals blocked;
  const Termination termination(exit_interrupted);
  raise_descriptor_limit();
  Bench bench(arguments, console);
  if (arguments.ramp.empty())
    bench.run_once();
  else
    bench.ramp(time_of("--ramp", arguments.ramp));
}

}  // namespace

void add_bench_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<BenchArguments>();
  Command command =
      program.add("bench", "Load a running service with real-time streams and measure it");
  arguments->load.add_to(command);
  command
      .add("--ramp", &arguments->ramp,
           "Find the largest number of streams with a p99 latency of at most this")
      .type("TIME");
  command.add("--json", &arguments->json, "Print each run as a line of JSON");
  command.run(console, [arguments, &console] { bench(*arguments, console); });
}

}  // namespace millrace
