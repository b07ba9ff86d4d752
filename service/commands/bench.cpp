// SPDX-License-Identifier: Apache-2.0
#include "service/commands/bench.h"

#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <exception>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "load/load_run.h"
#include "load/verdict.h"
#include "service/commands/command_line.h"
#include "service/commands/input/audio_file.h"
#include "service/commands/output/bench_report.h"
#include "service/commands/termination.h"
#include "service/config/descriptors.h"
#include "service/config/units.h"

namespace millrace {
namespace {

using load::LoadPlan;
using load::LoadReport;
using load::LoadTarget;

struct Arguments {
  LoadPlan plan;
  LoadTarget target;
  std::vector<std::string> files;
  std::string packet = "100ms", duration = "10s", warm_up = "1s", jitter = "0ms";
  std::string life, every, ramp, phase = "uniform", worker = "none";
  std::uint32_t dim = 0;
  pid_t server = 0;
  bool json = false;
};

Duration time_of(const std::string& option, const std::string& text) {
  const auto time = parse_time(text);
  if (!time)
    throw std::invalid_argument(option + ": \"" + text + "\" must be a time such as 100ms");
  return *time;
}

// Throws std::invalid_argument, and std::runtime_error for a file that cannot be read.
void read_files(const std::vector<std::string>& paths, LoadTarget& target) {
  for (const std::string& path : paths) {
    auto file = AudioFile::open(path);
    if (!file) throw std::runtime_error(path + ": " + file.error());
    if (!target.content.empty() &&
        (file->rate() != target.type.rate || file->channels() != target.type.values))
      throw std::invalid_argument(path + ": another rate or other channels than the files before");
    target.type.rate = file->rate();
    target.type.values = file->channels();
    for (;;) {
      const auto frames = file->read(1 << 16);
      if (!frames) throw std::runtime_error(path + ": " + frames.error());
      if (frames->empty()) break;
      const Bytes bytes = std::as_bytes(*frames);
      target.content.insert(target.content.end(), bytes.begin(), bytes.end());
    }
  }
}

LoadPlan plan_of(const Arguments& arguments) {
  LoadPlan plan = arguments.plan;
  plan.packet = time_of("--packet", arguments.packet);
  plan.length = time_of("--duration", arguments.duration);
  plan.warm_up = time_of("--warm-up", arguments.warm_up);
  plan.jitter = time_of("--jitter", arguments.jitter);
  plan.phase = *load::phase_named(arguments.phase);
  plan.window = arguments.every.empty() ? plan.length : time_of("--every", arguments.every);
  if (!arguments.life.empty()) plan.life = time_of("--life", arguments.life);
  if (plan.packet <= Duration::zero() || plan.length <= Duration::zero() ||
      plan.window <= Duration::zero() || (plan.life && *plan.life <= Duration::zero()))
    throw std::invalid_argument("--packet, --duration, --every, --life: must be more than nothing");
  if (plan.jitter > plan.packet)
    throw std::invalid_argument("--jitter: packets may not overtake each other (--packet)");
  if (plan.aborts > 0 && !plan.life)
    throw std::invalid_argument("--aborts: streams need a --life to end before their time");
  if (plan.aborts > 0 && arguments.target.url.starts_with("tcp:"))
    throw std::invalid_argument("--aborts: streams over ZeroMQ share a connection");
  return plan;
}

LoadTarget target_of(const Arguments& arguments, const LoadPlan& plan) {
  LoadTarget target = arguments.target;
  using OwnWorker = LoadTarget::OwnWorker;
  if (arguments.worker != "none")
    target.worker = arguments.worker == "answer" ? OwnWorker::answering : OwnWorker::silent;
  if (arguments.server != 0) target.server = arguments.server;
  if (arguments.dim != 0) {
    target.type.features = true;
    target.type.values = arguments.dim;
  }
  read_files(arguments.files, target);
  const double frames = std::chrono::duration<double>(plan.packet).count() * target.type.rate;
  if (!arguments.files.empty() &&
      target.content.size() < static_cast<std::size_t>(frames) * target.type.bytes())
    throw std::invalid_argument("the files are shorter than a packet");
  return target;
}

class Bench {
 public:
  Bench(const Arguments& arguments, Console& console)
      : console_(console),
        plan_(plan_of(arguments)),
        target_(target_of(arguments, plan_)),
        json_(arguments.json) {}

  void run_once() {
    load::Schedule schedule(plan_);
    const LoadReport report = run(schedule);
    if (!is_whole(report)) console_.exit_code = 1;
  }

  // Doubles the streams while the bound holds, then halves the distance to the first number at
  // which it does not, down to a twentieth. A run that breaks off does not hold.
  void ramp(Duration bound) {
    std::uint32_t holds = 0, fails = 0;
    for (std::uint32_t next = plan_.streams; next > holds;) {
      plan_.streams = next;
      bool good = false;
      try {
        good = carries(bound);
      } catch (const std::exception& broke) {
        if (holds == 0) throw;  // it was never well
        console_.err << "millrace bench: " << next << " streams: " << broke.what() << std::endl;
      }
      (good ? holds : fails) = next;
      if (fails == 0)
        next = 2 * holds;
      else
        next = fails - holds > std::max(1u, fails / 20) ? holds + (fails - holds) / 2 : holds;
    }
    if (json_)
      console_.out << R"({"most_streams":)" << holds << "}" << std::endl;
    else
      console_.out << "most streams with p99 <= " << readable(bound) << ": " << holds << std::endl;
    if (holds == 0) console_.exit_code = 1;
  }

 private:
  bool carries(Duration bound) {
    load::Schedule schedule(plan_);
    const LoadReport report = run(schedule);
    const auto p99 = p99_of(report);
    if (!p99) throw std::runtime_error("nothing was answered: a ramp needs a worker");
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

// Figures of runs that ended before were printed.
[[noreturn]] void interrupted() {
  constexpr std::string_view line =
      "millrace bench: interrupted: the run in progress has no figures\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(130);
}

void bench(const Arguments& arguments, Console& console) {
  const BlockedSignals blocked;
  const Termination termination(interrupted);
  try {
    raise_descriptor_limit();
    Bench bench(arguments, console);
    if (arguments.ramp.empty())
      bench.run_once();
    else
      bench.ramp(time_of("--ramp", arguments.ramp));
  } catch (const std::exception& wrong) {
    console.err << "millrace bench: " << wrong.what() << '\n';
    console.exit_code = 1;
  }
}

void add_traffic(Command& command, Arguments& into) {
  command.add("FILE", &into.files, "Audio that streams hold, in turn; else noise").type(" ");
  command.add("--streams", &into.plan.streams, "At a time; where a ramp begins")
      .between(1u, 1'000'000u)
      .shows_default();
  command.add("--packet", &into.packet, "Signal in a message, and time between two")
      .type("TIME")
      .shows_default();
  command.add("--phase", &into.phase, "When in that time the streams send")
      .one_of({"uniform", "random", "step"})
      .shows_default();
  command.add("--jitter", &into.jitter, "Each packet is due up to so much later")
      .type("TIME")
      .shows_default();
  command.add("--life", &into.life, "Of a stream, in the mean; then another one comes")
      .type("TIME");
  command.add("--aborts", &into.plan.aborts, "The part of them that vanishes without an end")
      .between(0.0, 1.0);
  command.add("--duration", &into.duration, "How long to measure").type("TIME").shows_default();
  command.add("--warm-up", &into.warm_up, "How long to stream before measuring")
      .type("TIME")
      .shows_default();
  command.add("--every", &into.every, "Also print figures of each interval of this length")
      .type("TIME");
  command.add("--ramp", &into.ramp, "Find the largest number of streams with a p99 up to this")
      .type("TIME");
  command.add("--seed", &into.plan.seed, "Seed of all random choices");
}

void add_ends(Command& command, Arguments& into) {
  command.add("--url", &into.target.url, "Where the service listens")
      .type("ws://HOST:PORT|tcp://HOST:PORT")
      .shows_default();
  command.add("--pipeline", &into.target.pipeline, "Into which of its pipelines").shows_default();
  command.add("--options", &into.target.options, "Of each stream, a JSON object").type("JSON");
  command.add("--rate", &into.target.type.rate, "Frames per second").shows_default();
  const Option channels = command.add("--channels", &into.target.type.values, "Of audio");
  command.add("--dim", &into.dim, "Streams of features, with this many values in a frame")
      .excludes(channels);
  command
      .add("--worker", &into.worker,
           "Be the pipeline's worker too: look at every row, answer none or all")
      .one_of({"none", "silent", "answer"})
      .shows_default();
  command.add("--workers", &into.target.workers, "Where the service listens for workers")
      .type("unix:PATH|tcp://HOST:PORT");
  command.add("--threads", &into.target.threads, "Of the clients")
      .between(1u, 1024u)
      .shows_default();
  command.add("--server-pid", &into.server, "The service's process on this machine: measured too")
      .type("PID");
  command.add("--json", &into.json, "A JSON object in a line for each run");
}

}  // namespace

void add_bench_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<Arguments>();
  Command command = program.add(
      "bench", "Streams in real time into a running service, and measures what comes of it");
  add_traffic(command, *arguments);
  add_ends(command, *arguments);
  command.run([arguments, &console] { bench(*arguments, console); });
}

}  // namespace millrace
