// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands/access_options.h"
#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "commands/recorded/selection.h"
#include "commands/recordings.h"
#include "recording/reader/stream_parts.h"
#include "replay/replay.h"
#include "replay/replay_pipeline.h"
#include "replay/selection.h"
#include "schemas/text.h"

namespace millrace {
namespace {

using recording::StreamParts;

struct ReplayArguments {
  std::string directory;
  recordings::NamedStreams named;
  std::string workers, url;  // exactly one
  AccessOptions access;      // to `url`
  std::string speed = "max";
  std::uint32_t at_once = 0;
  std::string pipeline, chunk;
  std::string since, until;
  bool compare = false;
};

// The value, or its error as an exception.
template <class T>
T value_of(Result<T, std::string> result) {
  if (!result) throw std::invalid_argument(result.error());
  return std::move(*result);
}

ScheduleRule rule_of(const ReplayArguments& arguments) {
  ScheduleRule rule;
  if (arguments.at_once > 0) rule.at_once = arguments.at_once;
  if (arguments.speed == "max") return rule;
  const std::string& text = arguments.speed;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), rule.speed);
  if (error != std::errc{} || stop != text.data() + text.size() || !(rule.speed > 0) ||
      rule.speed > 1e6)
    throw std::invalid_argument("--speed: \"" + text +
                                "\" must be max, or a number above 0 and at most 1000000");
  return rule;
}

void check(const ReplayArguments& arguments, const PipelineChoice& choice) {
  if (arguments.workers.empty() == arguments.url.empty())
    throw std::invalid_argument("exactly one of --workers and --url must be given");
  if (!arguments.url.empty() && !arguments.chunk.empty())
    throw std::invalid_argument("--chunk: a service cuts by its own rule; give --workers");
  if (arguments.url.empty() && arguments.access.given())
    throw std::invalid_argument("--ca, --certificate, --key and --token-file apply to --url");
  if (!arguments.url.empty() && !choice.file.empty())
    throw std::invalid_argument("--pipeline: a service has its own settings; give NAME alone");
  if (arguments.compare && !arguments.chunk.empty())
    throw std::invalid_argument("--compare: rows of another rule have no recorded answers");
}

// The command's line for a shell, without the streams.
std::string line_of(const ReplayArguments& arguments) {
  std::string line = "millrace replay " + shell_quoted(arguments.directory);
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) line.append(option).append(shell_quoted(value));
  };
  add(" --workers ", arguments.workers);
  add(" --url ", arguments.url);
  add(" --ca ", arguments.access.ca);
  add(" --certificate ", arguments.access.certificate);
  add(" --key ", arguments.access.key);
  add(" --token-file ", arguments.access.token_file);
  add(" --speed ", arguments.speed == ReplayArguments().speed ? "" : arguments.speed);
  add(" --at-once ", arguments.at_once > 0 ? std::to_string(arguments.at_once) : "");
  add(" --pipeline ", arguments.pipeline);
  add(" --chunk ", arguments.chunk);
  add(" --since ", arguments.since);
  add(" --until ", arguments.until);
  return line + (arguments.compare ? " --compare" : "");
}

// Leaves out the streams of which the filter accepts no part.
void keep(std::vector<StreamParts>& streams, const recordings::Filter& filter) {
  std::erase_if(streams, [&](const StreamParts& parts) {
    return std::ranges::none_of(parts, [&](const auto& part) { return filter.accepts(part); });
  });
}

// The named streams, or all, by number. `pipeline`: only those of this one; empty: of any.
std::vector<StreamParts> selected(const ReplayArguments& arguments, const std::string& pipeline,
                                  recording::Recordings& recordings) {
  auto streams = recording::join_parts(
      arguments.named.empty()
          ? recordings.streams()
          : value_of(recordings::find_with_parts(recordings, arguments.named, line_of(arguments))));
  if (streams.empty()) throw std::invalid_argument(arguments.directory + ": has no streams");
  std::ranges::sort(streams, {}, [](const auto& parts) { return parts.front().meta.number; });
  keep(streams, {.pipeline = pipeline});
  if (!streams.empty()) return streams;
  throw std::invalid_argument(arguments.directory + ": has no such stream of pipeline " + pipeline);
}

// Leaves out the streams that were opened at other times.
void select_by_time(const ReplayArguments& arguments, std::vector<StreamParts>& streams) {
  recordings::Filter filter;
  if (const auto set = set_instant("--since", arguments.since, filter.since); !set)
    throw std::invalid_argument(set.error());
  if (const auto set = set_instant("--until", arguments.until, filter.until); !set)
    throw std::invalid_argument(set.error());
  keep(streams, filter);
  if (streams.empty())
    throw std::invalid_argument(arguments.directory +
                                ": no such stream was opened in the time of --since and --until");
}

bool is_growing(const StreamParts& parts) {
  return std::ranges::any_of(parts, &recording::RecordedStream::open);
}

// Runs the replay until it ends or a signal stops it.
bool run(Replay& replay) {
  const Termination termination([&replay] { replay.stop(); });
  const bool complete = replay.run();
  return complete && !termination.requested();
}

bool run(const ReplayArguments& arguments, const PipelineChoice& choice,
         recording::Recordings& recordings, std::span<const StreamParts> streams,
         ReplayOutput& output) {
  const ScheduleRule rule = rule_of(arguments);
  if (!arguments.url.empty())
    return run(*replay_to_service(recordings, streams, arguments.url, arguments.access.access(),
                                  rule, output));
  const auto address = workers_address(arguments.workers);
  if (!address)
    throw std::invalid_argument("--workers: \"" + arguments.workers +
                                "\" must be unix:PATH or tcp://ADDRESS:PORT");
  const auto all = std::views::join(streams);
  const std::vector<recording::RecordedStream> parts(all.begin(), all.end());
  const ReplayPipeline pipeline = value_of(replay_pipeline(parts, choice));
  if (!pipeline.note.empty()) output.notice(pipeline.note);
  return run(*replay_to_workers(recordings, streams, pipeline, *address, rule, output));
}

void replay(const ReplayArguments& arguments, Console& console) {
  PipelineChoice choice{.chunk = arguments.chunk};
  set_pipeline(choice, arguments.pipeline);
  check(arguments, choice);
  const auto recordings = value_of(recording::Recordings::open(arguments.directory));
  ReplayOutput output(console.out, console.err, arguments.compare);
  for (const std::string& problem : recordings->problems()) output.notice(problem);
  auto streams = selected(arguments, choice.file.empty() ? choice.name : "", *recordings);
  select_by_time(arguments, streams);
  if (!choice.file.empty()) select_by_pipeline(choice.name, streams);
  const auto growing = std::ranges::count_if(streams, is_growing);
  if (growing > 0) output.notice(growing_notice(static_cast<std::uint64_t>(growing)));
  const Time begun = Clock::now();
  const bool complete = run(arguments, choice, *recordings, streams, output);
  const std::chrono::duration<double> took = Clock::now() - begun;
  output.summary(took.count(), streams.size());
  if (!complete || !output.good()) console.exit_code = 1;
}

void add_options(Command& command, ReplayArguments& into) {
  command.add("DIR", &into.directory, "Directory of recordings").required().type(" ");
  add_named_streams(command, into.named,
                    "Names of the streams to replay; default: all, the oldest first");
  command
      .add("--since", &into.since,
           "Only streams opened at this time or later: a date (2026-11-24T14:00, in UTC) or an "
           "age (2h)")
      .type("TIME");
  command.add("--until", &into.until, "Only streams opened before this time").type("TIME");
  const Option workers =
      command
          .add("--workers", &into.workers,
               "Listens here for workers, and replays to them. Rows are those of the live streams")
          .type("unix:PATH|tcp://ADDRESS:PORT");
  command
      .add("--url", &into.url,
           "Replays to the service at this address, as its clients. The service cuts the rows")
      .type("ws://HOST:PORT|wss://HOST:PORT|tcp://HOST:PORT")
      .excludes(workers);
  into.access.add_to(command);
  command
      .add("--speed", &into.speed,
           "1: frames are sent at their recorded times. N: N times as fast. max: as fast as they "
           "are accepted")
      .type("1|N|max")
      .shows_default();
  command
      .add("--at-once", &into.at_once,
           "Most streams at a time. Default: as many as there is room for")
      .type("N")
      .between(1u, 1'000'000u);
  command
      .add("--pipeline", &into.pipeline,
           "NAME: only streams of this pipeline. FILE:NAME: also, slots, batches and dtype are "
           "those of this pipeline in a configuration file. If no stream is of it, the streams of "
           "another one. Default: one pipeline, with default settings")
      .type("[FILE:]NAME");
  command
      .add("--chunk", &into.chunk,
           "Cuts by this rule instead of the recorded one, as in millrace chunk --spec")
      .type("K=V,...");
  command.add("--compare", &into.compare,
              "Prints only the first row of each stream whose answer differs from the recorded "
              "answer. Exit code 1 if there is one");
}

}  // namespace

void add_replay_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<ReplayArguments>();
  Command command = program.add(
      "replay", "Replay recorded streams to workers or to a service, and print the answers");
  add_options(command, *arguments);
  command.run(console, [arguments, &console] {
    const BlockedSignals blocked;
    replay(*arguments, console);
  });
}

}  // namespace millrace
