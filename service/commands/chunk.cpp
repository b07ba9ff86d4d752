// SPDX-License-Identifier: Apache-2.0
#include "service/commands/chunk.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

#include "chunker/chunker.h"
#include "chunker/presets.h"
#include "service/commands/command_line.h"
#include "service/commands/input/audio_file.h"
#include "service/commands/input/events_file.h"
#include "service/commands/output/sample_window.h"

namespace millrace {
namespace {

using Outcome = Result<void, std::string>;
using Kind = Event::Kind;

constexpr std::size_t block = 16384;  // frames of a file read at once
constexpr double most_rate = 1e9;

struct Arguments {
  std::string spec, preset;          // exactly one
  std::string file, frames, events;  // exactly one
  std::optional<double> rate;
  bool values = false;
};

// Splits text like "size=1600,left=64".
Result<RuleKeys, std::string> split_spec(const std::string& spec) {
  RuleKeys keys;
  std::istringstream items(spec);
  for (std::string item; std::getline(items, item, ',');) {
    const auto equals = item.find('=');
    if (equals == item.npos)
      return "--spec: \"" + item + "\" must be KEY=VALUE; separate several by commas";
    keys.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return keys;
}

Result<RuleKeys, std::string> rule_keys(const Arguments& arguments) {
  if (arguments.spec.empty() == arguments.preset.empty())
    return std::string("exactly one of --spec and --preset must be given");
  if (!arguments.preset.empty()) return RuleKeys{{"preset", arguments.preset}};
  return split_spec(arguments.spec);
}

Result<ChunkRule, std::string> rule_from(const RuleKeys& keys, const RuleTarget& target) {
  const auto rule = parse_rule(keys, target);
  if (!rule) return rule.error().message;
  return *rule;
}

// Cuts one stream into rows and prints them as lines.
class RowStream {
 public:
  RowStream(const Spec& spec, std::ostream& out) : out_(out), chunker_(spec), lines_(out) {}

  RowLines& lines() { return lines_; }
  const Chunker& chunker() const { return chunker_; }

  Outcome add(Kind kind, std::uint64_t count = 0) {
    Event event;
    event.kind = kind;
    event.count = count;
    chunker_.add(event);
    while (const auto row = chunker_.next()) {
      lines_.print(*row);
      if (!out_) return std::string("the rows cannot be written");
    }
    return {};
  }

 private:
  std::ostream& out_;
  Chunker chunker_;
  RowLines lines_;
};

Outcome print_events(const StreamEvents& events, const ChunkRule& rule, bool values,
                     std::ostream& out) {
  const PositionValues positions;
  RowStream stream(events.spec(), out);
  if (values) stream.lines().show(positions, rule, events.width());
  for (const Event& event : events.events())
    if (const auto added = stream.add(event.kind, event.count); !added) return added;
  return {};
}

Outcome print_file(AudioFile& file, const ChunkRule& rule, bool values, std::ostream& out) {
  SampleWindow samples(file.channels());
  RowStream stream(rule.spec, out);
  if (values) stream.lines().show(samples, rule, rule.width());
  while (true) {
    const auto frames = file.read(block);
    if (!frames) return file.path() + ": " + frames.error();
    if (frames->empty()) return stream.add(Kind::end);
    if (values) samples.add(*frames);
    if (const auto added = stream.add(Kind::frames, frames->size() / file.channels()); !added)
      return added;
    if (values) samples.drop_before(stream.chunker().keep_from());
  }
}

Outcome chunk_file(const Arguments& arguments, const RuleKeys& keys, std::ostream& out) {
  auto file = AudioFile::open(arguments.file);
  if (!file) return arguments.file + ": " + file.error();
  if (arguments.rate.value_or(file->rate()) != file->rate())
    return arguments.file + ": has " + std::to_string(std::lround(file->rate())) +
           " frames per second; --rate must be the same: chunk does not resample";
  const auto rule = rule_from(keys, {.rate = file->rate()});
  if (!rule) return rule.error();
  return print_file(*file, *rule, arguments.values, out);
}

Result<StreamEvents, std::string> events_of(const Arguments& arguments, const ChunkRule& rule) {
  if (!arguments.events.empty()) return read_events(arguments.events, rule);
  const std::string& text = arguments.frames;
  std::uint64_t frames = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), frames);
  if (error != std::errc{} || stop != text.data() + text.size() || frames > max_position)
    return "--frames: \"" + text + "\" must be a whole number from 0 to " +
           std::to_string(max_position);
  StreamEvents events(rule);
  for (const auto& [kind, count] : {std::pair{"frames", frames}, {"end", std::uint64_t{0}}})
    if (const auto added = events.add(kind, count); !added) return added.error();
  return events;
}

Outcome chunk(const Arguments& arguments, std::ostream& out) {
  const auto keys = rule_keys(arguments);
  if (!keys) return keys.error();
  const bool file = !arguments.file.empty();
  if (file + !arguments.frames.empty() + !arguments.events.empty() != 1)
    return std::string("exactly one of FILE, --frames and --events must be given");
  if (arguments.rate && !(*arguments.rate > 0 && *arguments.rate <= most_rate))
    return std::string("--rate: must be above 0 and at most 1e9 frames per second");
  if (file) return chunk_file(arguments, *keys, out);
  const auto rule = rule_from(*keys, target_of(*keys, arguments.rate));
  if (!rule) return rule.error();
  const auto events = events_of(arguments, *rule);
  if (!events) return events.error();
  return print_events(*events, *rule, arguments.values, out);
}

void add_options(Command& command, Arguments& into) {
  command.add("FILE", &into.file, "Audio file to cut into rows").type(" ");
  command
      .add("--spec", &into.spec,
           "Chunk rule: size, step, first, left, right, min (frames or a time), tail, align, pad, "
           "sizes (80ms+160ms, or 40ms..1s/40ms), rule, seed, per")
      .type("KEY=VALUE,...");
  command.add("--preset", &into.preset, "Chunk rule of a known model, such as silero-16k")
      .type("NAME");
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
}

}  // namespace

void add_chunk_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<Arguments>();
  Command command = program.add(
      "chunk",
      "Print the rows of a stream, without a service: [seq,begin,left,size,right,flags,gap]");
  add_options(command, *arguments);
  command.run([arguments, &console] {
    auto chunked = chunk(*arguments, console.out);
    if (chunked && !console.out.flush()) chunked = std::string("the rows cannot be written");
    if (chunked) return;
    console.err << "millrace chunk: " << chunked.error() << '\n';
    console.exit_code = 1;
  });
}

}  // namespace millrace
