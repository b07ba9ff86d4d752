// SPDX-License-Identifier: Apache-2.0
#include "commands/bench_options.h"

#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/enum_names.h"
#include "input/audio_file.h"
#include "service/config/toml/units.h"

namespace millrace {

using load::LoadPlan;
using load::LoadTarget;

namespace {

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

}  // namespace

Duration time_of(const std::string& option, const std::string& text) {
  const auto time = parse_time(text);
  if (!time)
    throw std::invalid_argument(option + ": \"" + text + "\" must be a time such as 100ms");
  return *time;
}

// RATE/s, or all@TIME.
void read_cuts(const std::string& text, LoadPlan& plan) {
  constexpr std::string_view all = "all@", per_second = "/s";
  if (text.starts_with(all)) {
    plan.cut_all = time_of("--cut", text.substr(all.size()));
    return;
  }
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, plan.cuts);
  if (error != std::errc() || std::string_view(rest, end) != per_second || !(plan.cuts > 0))
    throw std::invalid_argument("--cut: \"" + text + "\" must be a rate such as 0.1/s, or all@5s");
}

LoadPlan BenchOptions::plan() const {
  LoadPlan plan = given_plan;
  plan.packet = time_of("--packet", packet);
  plan.length = time_of("--duration", duration);
  plan.warm_up = time_of("--warm-up", warm_up);
  plan.jitter = time_of("--jitter", jitter);
  plan.phase = *value_named<load::Phase>(phase);
  plan.window = every.empty() ? plan.length : time_of("--every", every);
  if (!life.empty()) plan.life = time_of("--life", life);
  // A stream of the other protocols has only text: without commits, it would have no finals.
  if (!commit.empty() || speak != "millrace")
    plan.commit = time_of("--commit", commit.empty() ? "3s" : commit);
  if (plan.packet <= Duration::zero() || plan.length <= Duration::zero() ||
      plan.window <= Duration::zero() || (plan.life && *plan.life <= Duration::zero()) ||
      (plan.commit && *plan.commit <= Duration::zero()))
    throw std::invalid_argument(
        "--packet, --duration, --every, --life, --commit: must be positive");
  if (plan.jitter > plan.packet) throw std::invalid_argument("--jitter: must be at most --packet");
  if (plan.aborts > 0 && !plan.life) throw std::invalid_argument("--aborts: needs --life");
  const bool is_tcp = given_target.url.starts_with("tcp:");
  if (plan.commit && is_tcp)
    throw std::invalid_argument("--commit, --speak: need a ws:// or wss:// URL");
  if (!cut.empty()) read_cuts(cut, plan);
  if ((resume || !cut.empty()) && (is_tcp || speak != "millrace"))
    throw std::invalid_argument(
        "--cut, --resume: need --speak millrace and a ws:// or wss:// URL: only these streams "
        "resume");
  if (plan.aborts > 0 && is_tcp)
    throw std::invalid_argument(
        "--aborts: needs a ws:// URL: streams over ZeroMQ share a connection");
  return plan;
}

void BenchOptions::set_worker(LoadTarget& target) const {
  using OwnWorker = LoadTarget::OwnWorker;
  if (worker != "none")
    target.worker = worker == "answer" ? OwnWorker::answering : OwnWorker::silent;
  else if (target.worker_device != "host")
    throw std::invalid_argument("--worker-device: needs --worker silent or answer");
  else if (target.messages > 0)
    throw std::invalid_argument("--messages: needs --worker silent or answer");
}

void BenchOptions::set_protocol(LoadTarget& target) const {
  target.spoken = *value_named<load::Spoken>(speak);
  if (target.spoken == load::Spoken::millrace) {
    if (!target.model.empty()) throw std::invalid_argument("--model: needs --speak");
    return;
  }
  if (!target.options.empty() || target.messages > 0)
    throw std::invalid_argument("--options, --messages: only with --speak millrace");
  const bool is_pcm = !target.format || *target.format == SampleFormat::s16le;
  if (target.spoken == load::Spoken::openai && !target.rate && target.content.empty())
    target.rate = is_pcm ? 24'000 : 8'000;
}

LoadTarget BenchOptions::target(const LoadPlan& plan) const {
  LoadTarget target = given_target;
  target.access = access.access();
  target.resume = resume || !cut.empty();
  set_worker(target);
  if (server != 0) target.server = server;
  if (dim != 0) {
    target.type.features = true;
    target.type.values = dim;
  }
  if (!format.empty()) target.format = value_named<SampleFormat>(format);
  if (!files.empty() && target.format && *target.format != SampleFormat::s16le)
    throw std::invalid_argument("--format: files are sent as s16le");
  target.rate = rate;
  read_files(files, target);
  set_protocol(target);
  target.type.rate = pipeline_rate.value_or(target.rate.value_or(target.type.rate));
  const double frames =
      std::chrono::duration<double>(plan.packet).count() * target.rate.value_or(0);
  if (!files.empty() &&
      target.content.size() < static_cast<std::size_t>(frames) * target.type.bytes())
    throw std::invalid_argument("the files must hold at least one --packet of audio");
  return target;
}

void BenchOptions::add_to(Command& command) {
  add_traffic(command);
  add_ends(command);
}

void BenchOptions::add_traffic(Command& command) {
  command.add("FILE", &files, "Audio files to stream, in turn; default: noise").type(" ");
  command
      .add("--streams", &given_plan.streams,
           "Streams at a time; with --ramp, the number to start with")
      .between(1u, 1'000'000u)
      .shows_default();
  command.add("--packet", &packet, "Signal per message, and the time between two messages")
      .type("TIME")
      .shows_default();
  command
      .add("--phase", &phase,
           "When streams send within a --packet: evenly spread, at random, or all at once")
      .one_of({"uniform", "random", "step"})
      .shows_default();
  command.add("--jitter", &jitter, "Longest random delay of a packet").type("TIME").shows_default();
  command
      .add("--life", &life,
           "Mean lifetime of a stream; each is replaced when it ends. Default: the whole run")
      .type("TIME");
  command
      .add("--aborts", &given_plan.aborts,
           "Share of streams with a --life that disconnect without an end; default: 0")
      .between(0.0, 1.0);
  command
      .add("--commit", &commit,
           "Audio between two commits of a stream, which ask for the final text. Default: none; "
           "with --speak openai or deepgram 3s")
      .type("TIME");
  command.add("--resume", &resume, "Open streams that survive their connection");
  command
      .add(
          "--cut", &cut,
          "Cut connections at random, this often per stream and second, or all at this time of the "
          "measured time; their streams resume")
      .type("RATE/s|all@TIME");
  command.add("--duration", &duration, "Measured time").type("TIME").shows_default();
  command.add("--warm-up", &warm_up, "Time before measuring starts").type("TIME").shows_default();
  command.add("--every", &every, "Also report figures for each interval of this length")
      .type("TIME");
  command.add("--seed", &given_plan.seed, "Random seed; default: 1");
}

void BenchOptions::add_ends(Command& command) {
  command.add("--url", &given_target.url, "Address of the service")
      .type("ws://HOST:PORT[/PATH]|wss://HOST:PORT[/PATH]|tcp://HOST:PORT")
      .shows_default();
  command
      .add("--speak", &speak,
           "Protocol of the clients; openai and deepgram measure any server of these protocols")
      .one_of({"millrace", "openai", "deepgram"})
      .shows_default();
  command.add("--model", &given_target.model, "Model that openai and deepgram clients name");
  access.add_to(command);
  command.add("--pipeline", &given_target.pipeline, "Pipeline to stream to").shows_default();
  command.add("--options", &given_target.options, "Options of each stream, a JSON object")
      .type("JSON");
  command
      .add("--format", &format,
           "Format of the clients' audio; opus needs --packet 20ms. Default: s16le, with --dim "
           "f32le")
      .one_of({"s16le", "s24le", "f32le", "mulaw", "alaw", "opus"});
  command.add(
      "--rate", &rate,
      "Frames per second of the clients; default: with --worker the pipeline's, else 16000");
  command.add("--pipeline-rate", &pipeline_rate,
              "Frames per second of the pipeline, without --worker; default: --rate");
  const Option channels =
      command.add("--channels", &given_target.type.values, "Channels of audio; default: 1");
  command
      .add("--dim", &dim, "Stream features with this number of values per frame, instead of audio")
      .excludes(channels);
  command
      .add("--worker", &worker,
           "Also be the pipeline's worker and check every row: silent sends no result, answer one "
           "per row")
      .one_of({"none", "silent", "answer"})
      .shows_default();
  command
      .add("--messages", &given_target.messages,
           "Messages of 64 bytes that --worker sends to a client for each of its rows; default: 0")
      .between(0u, 1000u);
  command
      .add("--workers", &given_target.workers,
           "Workers' address of the service, for --worker; default: as for tap --url")
      .type("unix:PATH|tcp://HOST:PORT");
  command
      .add("--worker-device", &given_target.worker_device,
           "Where --worker takes the batches: host, or a CUDA device, whose memory is then checked")
      .type("host|cuda|cuda:N")
      .shows_default();
  command.add("--threads", &given_target.threads, "Client threads")
      .between(1u, 1024u)
      .shows_default();
  command
      .add("--server-pid", &server,
           "Process ID of the service on this machine, to measure its CPU and memory too")
      .type("PID");
}

}  // namespace millrace
