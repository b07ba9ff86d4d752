// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "commands/access_options.h"
#include "commands/console/command_line.h"
#include "commands/input/audio_source.h"
#include "commands/streaming/streaming_files.h"
#include "service/config/toml/units.h"

namespace millrace {
namespace {

constexpr std::string_view default_packet = "100ms", opus_packet = "20ms";

struct StreamArguments {
  std::vector<std::string> files;
  std::string url = "ws://127.0.0.1:8080";
  AccessOptions access;
  std::string pipeline = "default";
  std::string id;
  std::string options;
  std::string chunk;
  std::string channel;
  bool split = false;
  bool opus = false;
  bool realtime = false;
  bool no_record = false;
  bool json = false;
  std::string packet{default_packet};
  std::string format;
  double rate = 0;
  std::uint32_t channels = 1;
  std::size_t repeat = 1;
  std::size_t streams = 0;
};

struct Run {
  StreamPlan plan;
  std::vector<FilePart> parts{};  // one stream each
  std::size_t at_once = 1;        // streams at a time
};

std::optional<AudioFormat> raw_of(const StreamArguments& arguments) {
  if (arguments.format.empty()) {
    if (arguments.rate > 0 || arguments.channels != 1)
      throw std::invalid_argument("--rate and --channels apply to raw audio: give --format too");
    return std::nullopt;
  }
  if (arguments.rate <= 0)
    throw std::invalid_argument("--format: raw audio has no header: give --rate too");
  return AudioFormat{.format = *parse_sample_format(arguments.format, false),
                     .rate = arguments.rate,
                     .channels = arguments.channels};
}

Duration packet_of(const StreamArguments& arguments) {
  if (arguments.opus && arguments.packet == default_packet) return *parse_time(opus_packet);
  const auto packet = parse_time(arguments.packet);
  if (!packet || *packet <= Duration::zero())
    throw std::invalid_argument("--packet: \"" + arguments.packet +
                                "\" must be a time such as 100ms");
  if (arguments.opus && *packet != *parse_time(opus_packet))
    throw std::invalid_argument("--packet: with --opus, a message has 20ms");
  return *packet;
}

// The channels of a file. A file that cannot be read is one part: streaming it gives the error.
std::vector<FilePart> channels_of(const std::string& path, const std::optional<AudioFormat>& raw) {
  const auto source = open_audio(path, raw);
  const std::uint32_t channels = source ? (*source)->format().channels : 1;
  if (channels == 1) return {{path}};
  std::vector<FilePart> parts;
  for (std::uint32_t channel = 0; channel < channels; ++channel) parts.push_back({path, channel});
  return parts;
}

std::vector<FilePart> parts_of(const StreamArguments& arguments,
                               const std::optional<AudioFormat>& raw) {
  const auto inputs = std::ranges::count(arguments.files, "-");
  const bool again = arguments.repeat > 1 || arguments.split ||
                     (inputs > 0 && arguments.streams > arguments.files.size());
  if (inputs > 1 || (inputs == 1 && again))
    throw std::invalid_argument("-: standard input can be streamed only once");
  std::vector<FilePart> parts;
  for (const std::string& file : arguments.files)
    if (arguments.split)
      std::ranges::move(channels_of(file, raw), std::back_inserter(parts));
    else
      parts.push_back({file});
  return parts;
}

// The name of a part's stream; {} is the name of its file without folder and extension.
std::string id_of(std::string id, const FilePart& part) {
  const std::string file = std::filesystem::path(part.path).stem().string();
  for (auto at = id.find("{}"); at != id.npos; at = id.find("{}", at + file.size()))
    id.replace(at, 2, file);
  if (part.channel) id += "-" + std::to_string(*part.channel);
  return id;
}

void name_streams(std::vector<FilePart>& parts, const StreamArguments& arguments) {
  if (arguments.id.empty()) return;
  std::set<std::string> ids;
  for (FilePart& part : parts) {
    part.id = id_of(arguments.id, part);
    if (!ids.insert(part.id).second || arguments.repeat > 1)
      throw std::invalid_argument("--id: two streams would have the name \"" + part.id +
                                  "\"; {} stands for the name of the file");
  }
}

// Throws std::invalid_argument.
Run plan_run(const StreamArguments& arguments) {
  Run run{.plan = {.request = {.pipeline = arguments.pipeline,
                               .options = arguments.options,
                               .record = !arguments.no_record},
                   .raw = raw_of(arguments),
                   .packet = packet_of(arguments),
                   .opus = arguments.opus,
                   .realtime = arguments.realtime,
                   .look = {.json = arguments.json}}};
  if (!arguments.channel.empty()) run.plan.request.channel = arguments.channel;
  if (!arguments.chunk.empty()) run.plan.request.chunk = arguments.chunk;
  run.parts = parts_of(arguments, run.plan.raw);
  run.at_once = arguments.streams == 0 ? run.parts.size() : arguments.streams;
  // If there are more streams than files, files are streamed more than once.
  for (std::size_t i = 0; run.parts.size() < run.at_once; ++i)
    run.parts.push_back(FilePart(run.parts[i]));
  name_streams(run.parts, arguments);
  run.plan.look.named = run.parts.size() > 1;
  return run;
}

Client client_of(const std::string& url, const ServiceAccess& access) {
  try {
    return Client(url, {}, access);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--url: ") + error.what());
  }
}

// Throws std::exception: a wrong argument, or too few descriptors.
void stream(const StreamArguments& arguments, Console& console) {
  const Run run = plan_run(arguments);
  Client client = client_of(arguments.url, arguments.access.access());
  StreamingFiles files(client, run.plan, console);
  for (std::size_t i = 0; i < run.parts.size(); ++i)
    files.add(i % run.at_once, run.parts[i], arguments.repeat);
  files.run();
}

void add_options(Command& command, StreamArguments& into) {
  command
      .add("FILE", &into.files,
           "Audio files, one stream each: WAV, FLAC, Ogg, MP3 and others, of any rate. -: WAV from "
           "standard input, sent as it arrives")
      .required()
      .type(" ");
  command.add("--url", &into.url, "Address of the service, ws://, wss:// or tcp://")
      .shows_default();
  into.access.add_to(command);
  command.add("--pipeline", &into.pipeline, "Pipeline to stream to").shows_default();
  command
      .add("--id", &into.id,
           "Name of the stream; {} is the name of the file without folder and extension. Default: "
           "the service generates one")
      .type("NAME");
  command.add("--options", &into.options, "Options for the worker, a JSON object").type("JSON");
  const Option channel =
      command
          .add("--channel", &into.channel,
               "Channel to stream, or mean. Default: the mean, if the pipeline has one channel")
          .type("N|mean");
  command.add("--split", &into.split, "Open a stream for each channel of a file").excludes(channel);
  command
      .add("--chunk", &into.chunk,
           "Chunk size, one of those of the pipeline. Default: the pipeline decides")
      .type("TIME");
  command.add("--opus", &into.opus, "Send the audio as Opus, in packets of 20ms");
  command.add("--realtime", &into.realtime,
              "Send in real time, as a microphone would; default: as fast as possible");
  command.add("--json", &into.json, "Print transcripts too as JSON lines, one for each result");
  command.add("--no-record", &into.no_record, "Decline to be recorded");
  command.add("--packet", &into.packet, "Length of audio per message").type("TIME").shows_default();
  command
      .add("--format", &into.format,
           "Read the files as raw audio of this format: s16le, s24le, f32le, mulaw or alaw")
      .one_of({"s16le", "s24le", "f32le", "mulaw", "alaw"});
  command.add("--rate", &into.rate, "Frames per second of raw audio").type("N").between(1.0, 1e9);
  command.add("--channels", &into.channels, "Channels of raw audio")
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
  auto arguments = std::make_shared<StreamArguments>();
  Command command = program.add("stream", "Stream audio files to a service and print its messages");
  add_options(command, *arguments);
  command.run(console, [arguments, &console] { stream(*arguments, console); });
}

}  // namespace millrace
