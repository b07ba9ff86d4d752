// SPDX-License-Identifier: Apache-2.0
#include "service/commands/stream.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <memory>
#include <ostream>
#include <vector>

#include "service/commands/stream_client.h"
#include "service/units.h"

namespace millrace {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string url = "ws://127.0.0.1:8080";
  std::string pipeline = "default";
  std::string options;
  bool realtime = false;
  std::string packet = "100ms";
  std::size_t repeat = 1;
  std::size_t streams = 0;
};

// What several streams at a time have in common.
struct Run {
  StreamPlan plan;
  std::vector<std::string> files;  // a stream each
  std::size_t repeat = 1;
  std::size_t at_once = 1;
  Console& console;
};

// Every `at_once`th file, one stream after the other.
Task<> stream_some(Executor executor, Run& run, std::size_t first) {
  for (std::size_t i = first; i < run.files.size(); i += run.at_once) {
    for (std::size_t time = 0; time < run.repeat; ++time) {
      std::string path = run.files[i];
      const auto streamed =
          co_await stream_file(executor, run.plan, std::move(path), run.console.out);
      if (streamed.has_value()) continue;
      run.console.err << "millrace stream: " << run.files[i] << ": " << streamed.error()
                      << std::endl;
      run.console.exit_code = 1;
    }
  }
}

Result<Run, std::string> plan_run(const Arguments& arguments, Console& console) {
  auto url = parse_service_url(arguments.url);
  if (!url) return "--url: \"" + arguments.url + "\" must be ws://HOST:PORT";
  const auto packet = parse_time(arguments.packet);
  if (!packet || *packet <= Duration::zero())
    return "--packet: \"" + arguments.packet + "\" must be a time such as 100ms";
  Run run{.plan = {.url = std::move(*url),
                   .request = {.pipeline = arguments.pipeline, .options = arguments.options},
                   .packet = *packet,
                   .realtime = arguments.realtime},
          .files = arguments.files,
          .repeat = arguments.repeat,
          .at_once = arguments.streams == 0 ? arguments.files.size() : arguments.streams,
          .console = console};
  // More streams than files: the files go round.
  for (std::size_t i = 0; run.files.size() < run.at_once; ++i) run.files.push_back(run.files[i]);
  return run;
}

void stream(const Arguments& arguments, Console& console) {
  auto run = plan_run(arguments, console);
  if (!run) {
    console.err << "millrace stream: " << run.error() << '\n';
    console.exit_code = 1;
    return;
  }
  net::io_context context(1);
  for (std::size_t i = 0; i < run->at_once; ++i) {
    net::co_spawn(context, stream_some(context.get_executor(), *run, i),
                  [](std::exception_ptr thrown) {
                    if (thrown) std::rethrow_exception(thrown);
                  });
  }
  context.run();
}

void add_options(CLI::App& command, Arguments& into) {
  command.add_option("FILE", into.files, "Audio files; each is a stream")
      ->required()
      ->type_name(" ");
  command.add_option("--url", into.url, "Where the service listens")->capture_default_str();
  command.add_option("--pipeline", into.pipeline, "Into which of its pipelines")
      ->capture_default_str();
  command.add_option("--options", into.options, "A JSON object for the worker")->type_name("JSON");
  command.add_flag("--realtime", into.realtime, "As a microphone would; else as fast as it goes");
  command.add_option("--packet", into.packet, "Audio in one message")
      ->type_name("TIME")
      ->capture_default_str();
  command.add_option("--repeat", into.repeat, "Streams each file so often, one time after another")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--streams", into.streams,
                  "So many at a time, of more than there are files the files go round; else "
                  "all files at once")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_stream_command(CLI::App& program, Console& console) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *program.add_subcommand(
      "stream", "Streams audio files to a service, and prints its messages as JSON lines");
  add_options(command, *arguments);
  command.callback([arguments, &console] { stream(*arguments, console); });
}

}  // namespace millrace
