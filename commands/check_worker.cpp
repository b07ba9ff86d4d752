// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "checking/check_frames.h"
#include "checking/check_report.h"
#include "checking/check_run.h"
#include "checking/plan/client_messages.h"
#include "checking/plan/stage.h"
#include "commands/console/command_line.h"
#include "commands/console/progress.h"
#include "commands/console/termination.h"
#include "schemas/text.h"
#include "service/config/options.h"

namespace millrace {
namespace {

using namespace checking;

// More of them take long to play: they come as copies where batches are to be full.
constexpr std::uint32_t least_streams = 6, enough_streams = 18;

constexpr std::size_t most_set = 4000;  // bytes; the streams have other options, too

struct CheckArguments {
  std::string config, pipeline, streams;
  ClientTexts texts;
  double tolerance = 0;
  std::vector<std::string> command;
};

// A folder of this user alone, for the socket.
class SocketFolder {
 public:
  SocketFolder() {
    std::string path = std::filesystem::temp_directory_path() / "millrace-check-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), path);
    path_ = path;
  }
  ~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

CheckSettings settings_of(const CheckArguments& arguments) {
  auto configuration =
      arguments.config.empty() ? parse_options("", "") : load_options(arguments.config);
  if (!configuration) throw std::invalid_argument(configuration.error());
  const Options& options = configuration->options;
  const auto& all = options.pipelines;
  if (arguments.pipeline.empty() && all.size() > 1)
    throw std::invalid_argument(arguments.config +
                                ": has several pipelines: name one with "
                                "--pipeline");
  const auto found = arguments.pipeline.empty()
                         ? all.begin()
                         : std::ranges::find(all, arguments.pipeline, &PipelineOptions::name);
  if (found == all.end())
    throw std::invalid_argument("--pipeline: there is no pipeline " + arguments.pipeline);
  return {.pipeline = *found,
          .gpu = options.gpu,
          .slab_bytes = options.limits.slab_bytes,
          .command = arguments.command};
}

std::vector<CheckedStream> streams_of(const CheckArguments& arguments,
                                      const PipelineOptions& pipeline, Draws& draws) {
  const std::uint32_t streams = std::clamp(pipeline.batch.rows + 2, least_streams, enough_streams);
  std::vector<StreamFrames> all;
  if (arguments.streams.empty()) {
    all = generated_frames(streams, pipeline.frames, pipeline.chunk.spec.size, draws);
  } else {
    auto frames = frames_at(arguments.streams, pipeline.name, streams, pipeline.frames, draws);
    if (!frames) throw std::invalid_argument("--streams: " + frames.error());
    all = std::move(*frames);
  }
  auto cut = cut_streams(std::move(all), pipeline.frames, pipeline.chunk, draws);
  add_client_messages(cut, arguments.texts, draws);
  return cut;
}

void check_texts(const ClientTexts& texts) {
  for (const std::string& text : texts.messages)
    if (!is_json(text)) throw std::invalid_argument("--message: is not JSON: " + text);
  for (const std::string& text : texts.sets)
    if (!is_json_object(text) || text.size() > most_set)
      throw std::invalid_argument("--set: is not a JSON object of at most 4000 bytes: " + text);
}

void play(CheckRun& run, const std::vector<Stage>& stages, CheckReport& report, Console& console) {
  Progress progress(console.err, console.terminal);
  const Termination termination([&run] { run.stop(); });
  progress.show("starting the worker", Clock::now());
  for (const Stage& stage : stages) {
    report.add(run.play(stage, [&](std::size_t batches) {
      progress.show(std::string(stage.name) + ": " + std::to_string(batches) + " of " +
                        std::to_string(stage.batches.size()) + " batches",
                    Clock::now());
    }));
    if (report.failed() == report.answered() && report.messages().compared() == 0)
      break;  // there is nothing to compare
  }
}

// True if the worker passes.
bool print(const CheckReport& report, double tolerance, std::ostream& out) {
  out << report.table() << '\n';
  if (report.differs()) {
    out << report.difference();
    return false;
  }
  if (report.answered() == 0 && report.messages().compared() == 0) {
    out << "The worker has answered no row: nothing was compared.\n";
    return false;
  }
  if (report.failed() > 0) {
    out << report.failed() << " of " << counted(report.answered(), "answer")
        << " to streams alone are errors. The first: " << report.first_error() << '\n';
    return false;
  }
  if (report.distinct() <= 1 && report.messages().distinct() <= 1) {
    out << "All answers are equal: give --streams with signals that the worker answers "
           "differently.\n";
    return false;
  }
  out << "The worker passes: each stream gets the answers that it gets alone";
  if (tolerance > 0) out << ", within the tolerance";
  out << ".\n" << report.distinct() << " answers are distinct.\n" << report.margin();
  const MessageReport& messages = report.messages();
  if (messages.compared() > 0)
    out << counted(messages.compared(), "message") << " of the worker compared.\n";
  if (messages.depends_on_time())
    out << "Messages of the worker are not compared: they differ when each stream is alone.\n";
  return true;
}

void check_worker(const CheckArguments& arguments, Console& console) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that ends its connection is an error of the worker
  check_texts(arguments.texts);
  Draws draws;
  CheckSettings settings = settings_of(arguments);
  const PipelineOptions pipeline = settings.pipeline;
  const auto streams = streams_of(arguments, pipeline, draws);
  const auto stages = make_stages(streams, pipeline.batch, draws);
  CheckReport report(streams, stages, pipeline.frames.rate, arguments.tolerance);
  console.out << "pipeline " << pipeline.name << ": " << counted(pipeline.batch.slots, "slot")
              << ", batches of up to " << counted(pipeline.batch.rows, "row") << "; "
              << counted(streams.size(), "stream") << "\n\n"
              << std::flush;
  const SocketFolder folder;
  CheckRun run(std::move(settings), streams, folder.path());
  try {
    play(run, stages, report, console);
  } catch (const std::exception&) {  // a difference that was found may be the reason
    if (!report.empty()) console.out << report.table() << std::flush;
    if (report.differs()) console.out << '\n' << report.difference() << std::flush;
    throw;
  }
  if (!print(report, arguments.tolerance, console.out)) console.exit_code = 1;
  if (!console.out.flush()) throw std::runtime_error("the report cannot be written");
  run.end();
}

void add_options(Command& command, CheckArguments& into) {
  command
      .add("--config", &into.config,
           "Configuration file (TOML) with the pipeline. Default: the pipeline of serve without a "
           "file")
      .type("FILE");
  command.add("--pipeline", &into.pipeline, "Pipeline of the worker. Default: the only one of FILE")
      .type("NAME");
  command
      .add("--streams", &into.streams,
           "Streams that the worker gets: a folder of audio files, a manifest, or recordings. "
           "Default: generated streams")
      .type("PATH");
  command
      .add("--tolerance", &into.tolerance,
           "Numbers may differ by T, or by this part of their value; the texts of a stream by this "
           "part "
           "of their characters. Default: 0, all answers must be equal")
      .type("T")
      .between(0.0, 1.0);
  command
      .add("--message", &into.texts.messages,
           "A message that clients of this worker may send; may be given several times. Default: "
           "objects with the key check_worker")
      .type("JSON");
  command
      .add("--set", &into.texts.sets,
           "Options of a stream that clients of this worker may choose and change; may be given "
           "several times. Default: the same key")
      .type("JSON");
  command
      .add("COMMAND", &into.command,
           "After --: the worker's command line. It is started twice, and finds the service by "
           "$MILLRACE_WORKERS")
      .required()
      .type(" ");
}

}  // namespace

void add_check_worker_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<CheckArguments>();
  Command command = program.add(
      "check-worker", "Check that a worker gives each stream the answers that it gets alone");
  add_options(command, *arguments);
  command.run(console, [arguments, &console] {
    const BlockedSignals blocked;
    check_worker(*arguments, console);
  });
}

}  // namespace millrace
