// SPDX-License-Identifier: Apache-2.0
#include "service/commands/stream.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <vector>

#include "service/commands/command_line.h"
#include "service/commands/streaming_files.h"
#include "service/config/units.h"

namespace millrace {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string url = "ws://127.0.0.1:8080";
  std::string pipeline = "default";
  std::string options;
  bool realtime = false;
  std::string packet = "100ms";
  std::string format;
  double rate = 0;
  std::uint32_t channels = 1;
  std::size_t repeat = 1;
  std::size_t streams = 0;
};

struct Run {
  StreamPlan plan;
  std::vector<std::string> files;  // one stream each
  std::size_t at_once = 1;         // streams at a time
};

std::optional<PcmFormat> raw_of(const Arguments& arguments) {
  if (arguments.format.empty()) {
    if (arguments.rate > 0 || arguments.channels != 1)
      throw std::invalid_argument("--rate and --channels apply to raw PCM: give --format too");
    return std::nullopt;
  }
  if (arguments.rate <= 0)
    throw std::invalid_argument("--format: raw PCM has no header: give --rate too");
  return PcmFormat{.name = arguments.format == "f32le" ? "f32le" : "s16le",
                   .rate = arguments.rate,
                   .channels = arguments.channels};
}

// Throws std::invalid_argument.
Run plan_run(const Arguments& arguments) {
  const auto packet = parse_time(arguments.packet);
  if (!packet || *packet <= Duration::zero())
    throw std::invalid_argument("--packet: \"" + arguments.packet +
                                "\" must be a time such as 100ms");
  Run run{.plan = {.request = {.pipeline = arguments.pipeline, .options = arguments.options},
                   .raw = raw_of(arguments),
                   .packet = *packet,
                   .realtime = arguments.realtime},
          .files = arguments.files,
          .at_once = arguments.streams == 0 ? arguments.files.size() : arguments.streams};
  // If there are more streams than files, files are streamed more than once.
  for (std::size_t i = 0; run.files.size() < run.at_once; ++i) run.files.push_back(run.files[i]);
  const auto inputs = std::ranges::count(run.files, "-");
  if (inputs > 1 || (inputs == 1 && arguments.repeat > 1))
    throw std::invalid_argument("-: standard input can be streamed only once");
  return run;
}

Client client_of(const std::string& url) {
  try {
    return Client(url);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--url: ") + error.what());
  }
}

void stream(const Arguments& arguments, Console& console) {
  try {
    const Run run = plan_run(arguments);
    Client client = client_of(arguments.url);
    StreamingFiles files(client, run.plan, console);
    for (std::size_t i = 0; i < run.files.size(); ++i)
      files.add(i % run.at_once, run.files[i], arguments.repeat);
    files.run();
  } catch (const std::exception& error) {  // a wrong argument, or too few descriptors
    console.err << "millrace stream: " << error.what() << '\n';
    console.exit_code = 1;
  }
}

void add_options(Command& command, Arguments& into) {
  command
      .add("FILE", &into.files,
           "Audio files, one stream each: WAV, FLAC, Ogg, MP3 and others, with the rate and "
           "channels of the pipeline. -: WAV from standard input, sent as it arrives")
      .required()
      .type(" ");
  command.add("--url", &into.url, "Address of the service, ws:// or tcp://").shows_default();
  command.add("--pipeline", &into.pipeline, "Pipeline to stream to").shows_default();
  command.add("--options", &into.options, "Options for the worker, a JSON object").type("JSON");
  command.add("--realtime", &into.realtime,
              "Send in real time, as a microphone would; default: as fast as possible");
  command.add("--packet", &into.packet, "Length of audio per message").type("TIME").shows_default();
  command.add("--format", &into.format, "Read the files as raw PCM of this format: s16le or f32le")
      .one_of({"s16le", "f32le"});
  command.add("--rate", &into.rate, "Frames per second of raw PCM").type("N").between(1.0, 1e9);
  command.add("--channels", &into.channels, "Channels of raw PCM")
      .type("N")
      .between(1u, 65535u)
      .shows_default();
  command.add("--repeat", &into.repeat, "Number of times to stream each file, one after another")
      .type("N")
      .between(1u, 1'000'000u)
      .shows_default();
  command
      .add("--streams", &into.streams,
           "Number of streams at a time; if it exceeds the number of files, files are streamed "
           "more than once. Default: all files at once")
      .type("N")
      .between(1u, 1'000'000u);
}

}  // namespace

void add_stream_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<Arguments>();
  Command command =
      program.add("stream", "Stream audio files to a service and print its messages as JSON lines");
  add_options(command, *arguments);
  command.run([arguments, &console] { stream(*arguments, console); });
}

}  // namespace millrace
