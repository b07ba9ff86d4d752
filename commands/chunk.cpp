// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "chunker/presets.h"
#include "commands/chunking/chunk_plot.h"
#include "commands/chunking/frame_window.h"
#include "commands/console/command_line.h"
#include "commands/input/events_file.h"
#include "commands/output/row_lines.h"
#include "cutting/cutter.h"
#include "input/audio_file.h"
#include "input/files/converted_file.h"
#include "service/config/options.h"

namespace millrace {
namespace {

using ChunkOutcome = Result<void, std::string>;

constexpr double most_rate = 1e9;
constexpr std::size_t block_frames = 16384;  // read at once

struct ChunkArguments {
  std::string spec, preset, config;  // exactly one
  std::string pipeline = "default";  // the name of a pipeline in `config`
  std::string file, frames, events;  // exactly one
  std::string name;                  // name of the stream; empty: `file`
  std::string plot;                  // file of the picture; empty: none
  std::optional<double> rate;
  bool values = false;
};

// How a stream is cut.
struct CutRule {
  FrameType frames{};
  ChunkRule chunk;
  std::optional<EndpointRule> endpoint;

  // The cutter of the stream with this name. Must not outlive the rule.
  Cutter cutter(std::string_view name) const {
    return Cutter(chunk, {.stream = name,
                          .rate = frames.rate,
                          .endpoint = endpoint ? &*endpoint : nullptr,
                          .detector = VoiceDetector::of(endpoint, frames)});
  }
};

// Cuts one stream, and prints its rows. Each call returns an error if they cannot be written.
class PrintedRows {
 public:
  // All arguments outlive it. `plot` may be null.
  PrintedRows(Cutter& cutter, RowLines& lines, std::ostream& out, ChunkPlot* plot = nullptr)
      : cutter_(cutter), lines_(lines), out_(out), plot_(plot) {}

  ChunkOutcome add(const Event& event, Bytes values = {}) {
    cutter_.add(event, {values, Bytes()});
    draw(event);
    return print();
  }
  // `values` may be empty if endpoints are not by voice.
  ChunkOutcome add_frames(std::uint64_t count, Bytes values) {
    while (count > 0) {
      if (const auto begun = print(); !begun) return begun;  // the first size enters here
      const std::uint64_t part = std::min(count, cutter_.frames_until_next());
      const std::size_t bytes = values.size() / count * part;
      const auto added = add({.kind = Event::Kind::frames, .count = part}, values.first(bytes));
      if (!added) return added;
      values = values.subspan(bytes);
      count -= part;
    }
    return {};
  }

 private:
  ChunkOutcome print() {
    while (const auto row = cutter_.next(Duration{}, [&](const Event& one) { draw(one); })) {
      lines_.print(*row);
      if (plot_) plot_->add(*row);
      if (!out_) return std::string("the rows cannot be written");
    }
    if (cutter_.lost_detector()) return std::string("no memory for a voice detector");
    return {};
  }
  void draw(const Event& event) {
    if (plot_) plot_->add(event, cutter_.endpoints());
  }

  Cutter& cutter_;
  RowLines& lines_;
  std::ostream& out_;
  ChunkPlot* plot_;
};

// The rule of --spec or --preset for frames of this kind.
Result<ChunkRule, std::string> rule_from(const ChunkArguments& arguments,
                                         const std::function<RuleTarget(const RuleKeys&)>& target) {
  const auto keys = arguments.preset.empty()
                        ? split_rule_keys(arguments.spec)
                        : Result<RuleKeys, std::string>(RuleKeys{{"preset", arguments.preset}});
  if (!keys) return "--spec: " + keys.error();
  const auto rule = parse_rule(*keys, target(*keys));
  if (!rule) return rule.error().message;
  return *rule;
}

// How the pipeline of --config cuts its streams.
Result<CutRule, std::string> pipeline_rule(const ChunkArguments& arguments) {
  const auto configuration = load_options(arguments.config);
  if (!configuration) return configuration.error();
  for (const PipelineOptions& pipeline : configuration->options.pipelines)
    if (pipeline.name == arguments.pipeline)
      return CutRule{pipeline.frames, pipeline.chunk, pipeline.endpoint};
  return arguments.config + ": has no pipeline " + arguments.pipeline;
}

// The rule for a file, which decides the rate and the channels of --spec and --preset.
Result<CutRule, std::string> rule_for(const ChunkArguments& arguments, const AudioFile& file) {
  if (!arguments.config.empty()) return pipeline_rule(arguments);
  if (arguments.rate.value_or(file.rate()) != file.rate())
    return arguments.file + ": has " + std::to_string(std::lround(file.rate())) +
           " frames per second; --rate must be the same: only --config converts the rate";
  const auto rule = rule_from(arguments, [&](auto&) { return RuleTarget{.rate = file.rate()}; });
  if (!rule) return rule.error();
  return CutRule{{.values = file.channels(), .rate = file.rate()}, *rule, {}};
}

// The rule for a stream without values.
Result<CutRule, std::string> rule_for(const ChunkArguments& arguments) {
  if (!arguments.config.empty()) return pipeline_rule(arguments);
  const auto rule =
      rule_from(arguments, [&](const RuleKeys& keys) { return target_of(keys, arguments.rate); });
  if (!rule) return rule.error();
  return CutRule{{}, *rule, {}};
}

ChunkOutcome print_events(const StreamEvents& events, const ChunkRule& rule, bool values,
                          std::ostream& out) {
  const PositionValues positions;
  const ChunkRule recorded{.spec = events.spec()};
  RowLines lines(out);
  Cutter cutter(recorded);
  PrintedRows rows(cutter, lines, out);
  if (values) lines.show(positions, rule, events.width());
  for (const Event& event : events.events())
    if (const auto added = rows.add(event); !added) return added;
  return {};
}

ChunkOutcome write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << text) || !out.flush()) return path + ": cannot be written";
  return {};
}

ChunkOutcome chunk_file(const ChunkArguments& arguments, std::ostream& out) {
  auto file = AudioFile::open(arguments.file);
  if (!file) return arguments.file + ": " + file.error();
  const auto rule = rule_for(arguments, *file);
  if (!rule) return rule.error();
  const std::string fault = ConvertedFile::fault(file->rate(), file->channels(), rule->frames);
  if (!fault.empty()) return arguments.file + ": " + fault;
  ConvertedFile frames(std::move(*file), rule->frames, SampleFormat::s16le);
  std::vector<std::byte> block(block_frames * rule->frames.bytes());

  FrameWindow window(rule->frames);
  RowLines lines(out);
  if (arguments.values) lines.show(window, rule->chunk, rule->chunk.width());
  ChunkPlot plot(rule->frames);
  const bool plots = !arguments.plot.empty();
  Cutter cutter = rule->cutter(arguments.name.empty() ? arguments.file : arguments.name);
  PrintedRows rows(cutter, lines, out, plots ? &plot : nullptr);
  while (true) {
    const auto got = frames.read(block);
    if (!got) return arguments.file + ": " + got.error();
    if (*got == 0) break;
    const Bytes values = Bytes(block).first(*got * rule->frames.bytes());
    if (arguments.values) window.add(values);
    if (plots) plot.add(values);
    const auto added = rows.add_frames(*got, values);
    if (!added) return added;
    if (arguments.values) window.drop_before(cutter.keep_from());
  }
  const auto ended = rows.add({.kind = Event::Kind::end});
  return ended && plots ? write(arguments.plot, plot.svg()) : ended;
}

Result<std::uint64_t, std::string> frames_of(const std::string& text) {
  std::uint64_t frames = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), frames);
  if (error == std::errc{} && stop == text.data() + text.size() && frames <= max_position)
    return frames;
  return "--frames: \"" + text + "\" must be a whole number from 0 to " +
         std::to_string(max_position);
}

ChunkOutcome chunk_frames(const ChunkArguments& arguments, const CutRule& rule, std::ostream& out) {
  const auto frames = frames_of(arguments.frames);
  if (!frames) return frames.error();
  if (rule.endpoint && rule.endpoint->by == EndpointRule::By::vad)
    return std::string("the pipeline's endpoints are by voice: FILE must be given");
  const PositionValues positions;
  RowLines lines(out);
  if (arguments.values) lines.show(positions, rule.chunk, rule.chunk.width());
  Cutter cutter = rule.cutter(arguments.name);
  PrintedRows rows(cutter, lines, out);
  const auto added = rows.add_frames(*frames, {});
  return added ? rows.add({.kind = Event::Kind::end}) : added;
}

ChunkOutcome chunk(const ChunkArguments& arguments, std::ostream& out) {
  const bool file = !arguments.file.empty();
  if (!arguments.spec.empty() + !arguments.preset.empty() + !arguments.config.empty() != 1)
    return std::string("exactly one of --spec, --preset and --config must be given");
  if (file + !arguments.frames.empty() + !arguments.events.empty() != 1)
    return std::string("exactly one of FILE, --frames and --events must be given");
  if (arguments.rate && !(*arguments.rate > 0 && *arguments.rate <= most_rate))
    return std::string("--rate: must be above 0 and at most 1e9 frames per second");
  if (arguments.rate && !arguments.config.empty())
    return std::string("--rate: cannot be combined with --config, which has the pipeline's rate");
  if (!arguments.plot.empty() && !file) return std::string("--plot: FILE must be given");
  if (file) return chunk_file(arguments, out);
  const auto rule = rule_for(arguments);
  if (!rule) return rule.error();
  if (!arguments.frames.empty()) return chunk_frames(arguments, *rule, out);
  const auto events = read_events(arguments.events, rule->chunk);
  if (!events) return events.error();
  return print_events(*events, rule->chunk, arguments.values, out);
}

void add_options(Command& command, ChunkArguments& into) {
  command.add("FILE", &into.file, "Audio file to cut into rows").type(" ");
  command.add("--spec", &into.spec, rule_help).type("KEY=VALUE,...");
  command.add("--preset", &into.preset, "Chunk rule of a known model, such as silero-16k")
      .type("NAME");
  command
      .add("--config", &into.config,
           "Configuration of a service: cuts by the rule and the endpoints of a pipeline")
      .type("FILE");
  command.add("--pipeline", &into.pipeline, "Pipeline of --config").type("NAME").shows_default();
  command.add("--frames", &into.frames, "Length of a stream without values, in frames").type("N");
  command
      .add("--events", &into.events,
           "JSON file with the events of a stream: [[\"frames\",1600],[\"end\",0]]")
      .type("FILE");
  command
      .add("--rate", &into.rate,
           "Frames per second of audio; default: as FILE or the preset's model, else 16000")
      .type("N");
  command.add("--values", &into.values,
              "Add the values of the row's columns; without FILE, frame p has the value p + 1");
  command
      .add("--name", &into.name,
           "Name of the stream, from which the rule random draws sizes; default: FILE")
      .type("NAME");
  command.add("--plot", &into.plot, "Also write a picture of the chunks of FILE, as SVG")
      .type("OUT");
}

}  // namespace

void add_chunk_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<ChunkArguments>();
  Command command = program.add(
      "chunk",
      "Print the rows of a stream, without a service: [seq,begin,left,size,right,flags,gap]");
  add_options(command, *arguments);
  command.run(console, [arguments, &console] {
    const auto chunked = chunk(*arguments, console.out);
    if (!chunked) throw std::runtime_error(chunked.error());
    if (!console.out.flush()) throw std::runtime_error("the rows cannot be written");
  });
}

}  // namespace millrace
