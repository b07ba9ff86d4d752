// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/file_descriptor.h"
#include "commands/access_options.h"
#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "commands/output/bench_report.h"
#include "input/audio_file.h"
#include "load/evaluation.h"
#include "load/load_run.h"
#include "service/config/toml/units.h"

namespace millrace {
namespace {

using load::LoadPlan;
using load::LoadReport;
using load::LoadTarget;

struct BenchArguments {
  LoadPlan plan;
  LoadTarget target;
  AccessOptions access;
  std::vector<std::string> files;
  std::string packet = "100ms", duration = "10s", warm_up = "1s", jitter = "0ms";
  std::string life, every, ramp, phase = "uniform", worker = "none", format;
  std::optional<double> rate, pipeline_rate;
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

// Throws std::invalid_argument; std::runtime_error if a file cannot be read.
void read_files(const std::vector<std::string>& paths, LoadTarget& target) {
  for (const std::string& path : paths) {
    auto file = AudioFile::open(path);
    if (!file) throw std::runtime_error(path + ": " + file.error());
    if (!target.content.empty() &&
        (file->rate() != target.rate || file->channels() != target.content_channels))
      throw std::invalid_argument(path +
                                  ": must have the same rate and channels as the files before it");
    target.rate = file->rate();
    target.type.values = target.content_channels = file->channels();
    for (;;) {
      const auto frames = file->read(1 << 16);
      if (!frames) throw std::runtime_error(path + ": " + frames.error());
      if (frames->empty()) break;
      const Bytes bytes = std::as_bytes(*frames);
      target.content.insert(target.content.end(), bytes.begin(), bytes.end());
    }
  }
}

LoadPlan plan_of(const BenchArguments& arguments) {
  LoadPlan plan = arguments.plan;
  plan.packet = time_of("--packet", arguments.packet);
  plan.length = time_of("--duration", arguments.duration);
  plan.warm_up = time_of("--warm-up", arguments.warm_up);
  plan.jitter = time_of("--jitter", arguments.jitter);
  plan.phase = *value_named<load::Phase>(arguments.phase);
  plan.window = arguments.every.empty() ? plan.length : time_of("--every", arguments.every);
  if (!arguments.life.empty()) plan.life = time_of("--life", arguments.life);
  if (plan.packet <= Duration::zero() || plan.length <= Duration::zero() ||
      plan.window <= Duration::zero() || (plan.life && *plan.life <= Duration::zero()))
    throw std::invalid_argument("--packet, --duration, --every, --life: must be positive");
  if (plan.jitter > plan.packet) throw std::invalid_argument("--jitter: must be at most --packet");
  if (plan.aborts > 0 && !plan.life) throw std::invalid_argument("--aborts: needs --life");
  if (plan.aborts > 0 && arguments.target.url.starts_with("tcp:"))
    throw std::invalid_argument(
        "--aborts: needs a ws:// URL: streams over ZeroMQ share a connection");
  return plan;
}

LoadTarget load_target(const BenchArguments& arguments, const LoadPlan& plan) {
  LoadTarget target = arguments.target;
  target.access = arguments.access.access();
  using OwnWorker = LoadTarget::OwnWorker;
  if (arguments.worker != "none")
    target.worker = arguments.worker == "answer" ? OwnWorker::answering : OwnWorker::silent;
  else if (target.worker_device != "host")
    throw std::invalid_argument("--worker-device: needs --worker silent or answer");
  else if (target.messages > 0)
    throw std::invalid_argument("--messages: needs --worker silent or answer");
  if (arguments.server != 0) target.server = arguments.server;
  if (arguments.dim != 0) {
    target.type.features = true;
    target.type.values = arguments.dim;
  }
  if (!arguments.format.empty()) target.format = value_named<SampleFormat>(arguments.format);
  if (!arguments.files.empty() && target.format && *target.format != SampleFormat::s16le)
    throw std::invalid_argument("--format: files are sent as s16le");
  target.rate = arguments.rate;
  read_files(arguments.files, target);
  target.type.rate = arguments.pipeline_rate.value_or(target.rate.value_or(target.type.rate));
  const double frames =
      std::chrono::duration<double>(plan.packet).count() * target.rate.value_or(0);
  if (!arguments.files.empty() &&
      target.content.size() < static_cast<std::size_t>(frames) * target.type.bytes())
    throw std::invalid_argument("the files must hold at least one --packet of audio");
  return target;
}

class Bench {
 public:
  Bench(const BenchArguments& arguments, Console& console)
      : console_(console),
        plan_(plan_of(arguments)),
        target_(load_target(arguments, plan_)),
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

void add_traffic(Command& command, BenchArguments& into) {
  command.add("FILE", &into.files, "Audio files to stream, in turn; default: noise").type(" ");
  command
      .add("--streams", &into.plan.streams,
           "Streams at a time; with --ramp, the number to start with")
      .between(1u, 1'000'000u)
      .shows_default();
  command.add("--packet", &into.packet, "Signal per message, and the time between two messages")
      .type("TIME")
      .shows_default();
  command
      .add("--phase", &into.phase,
           "When streams send within a --packet: evenly spread, at random, or all at once")
      .one_of({"uniform", "random", "step"})
      .shows_default();
  command.add("--jitter", &into.jitter, "Longest random delay of a packet")
      .type("TIME")
      .shows_default();
  command
      .add("--life", &into.life,
           "Mean lifetime of a stream; each is replaced when it ends. Default: the whole run")
      .type("TIME");
  command
      .add("--aborts", &into.plan.aborts,
           "Share of streams with a --life that disconnect without an end; default: 0")
      .between(0.0, 1.0);
  command.add("--duration", &into.duration, "Measured time").type("TIME").shows_default();
  command.add("--warm-up", &into.warm_up, "Time before measuring starts")
      .type("TIME")
      .shows_default();
  command.add("--every", &into.every, "Also report figures for each interval of this length")
      .type("TIME");
  command
      .add("--ramp", &into.ramp,
           "Find the largest number of streams with a p99 latency of at most this")
      .type("TIME");
  command.add("--seed", &into.plan.seed, "Random seed; default: 1");
}

void add_ends(Command& command, BenchArguments& into) {
  command.add("--url", &into.target.url, "Address of the service")
      .type("ws://HOST:PORT|wss://HOST:PORT|tcp://HOST:PORT")
      .shows_default();
  into.access.add_to(command);
  command.add("--pipeline", &into.target.pipeline, "Pipeline to stream to").shows_default();
  command.add("--options", &into.target.options, "Options of each stream, a JSON object")
      .type("JSON");
  command
      .add("--format", &into.format,
           "Format of the clients' audio; opus needs --packet 20ms. Default: s16le, with --dim "
           "f32le")
      .one_of({"s16le", "s24le", "f32le", "mulaw", "alaw", "opus"});
  command.add(
      "--rate", &into.rate,
      "Frames per second of the clients; default: with --worker the pipeline's, else 16000");
  command.add("--pipeline-rate", &into.pipeline_rate,
              "Frames per second of the pipeline, without --worker; default: --rate");
  const Option channels =
      command.add("--channels", &into.target.type.values, "Channels of audio; default: 1");
  command
      .add("--dim", &into.dim,
           "Stream features with this number of values per frame, instead of audio")
      .excludes(channels);
  command
      .add("--worker", &into.worker,
           "Also be the pipeline's worker and check every row: silent sends no result, answer one "
           "per row")
      .one_of({"none", "silent", "answer"})
      .shows_default();
  command
      .add("--messages", &into.target.messages,
           "Messages of 64 bytes that --worker sends to a client for each of its rows; default: 0")
      .between(0u, 1000u);
  command
      .add("--workers", &into.target.workers,
           "Workers' address of the service, for --worker; default: as for tap --url")
      .type("unix:PATH|tcp://HOST:PORT");
  command
      .add("--worker-device", &into.target.worker_device,
           "Where --worker takes the batches: host, or a CUDA device, whose memory is then checked")
      .type("host|cuda|cuda:N")
      .shows_default();
  command.add("--threads", &into.target.threads, "Client threads")
      .between(1u, 1024u)
      .shows_default();
  command
      .add("--server-pid", &into.server,
           "Process ID of the service on this machine, to measure its CPU and memory too")
      .type("PID");
  command.add("--json", &into.json, "Print each run as a line of JSON");
}

}  // namespace

void add_bench_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<BenchArguments>();
  Command command =
      program.add("bench", "Load a running service with real-time streams and measure it");
  add_traffic(command, *arguments);
  add_ends(command, *arguments);
  command.run(console, [arguments, &console] { bench(*arguments, console); });
}

}  // namespace millrace
