// SPDX-License-Identifier: Apache-2.0
#include "commands/recordings.h"

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/console/command_line.h"
#include "commands/console/commands.h"
#include "commands/console/progress.h"
#include "commands/recorded/export/export.h"
#include "commands/recorded/instant.h"
#include "commands/recorded/list_streams.h"
#include "commands/recorded/remove_streams.h"
#include "commands/recorded/repair.h"
#include "commands/recorded/selection.h"
#include "commands/recorded/show_stream.h"
#include "commands/recorded/verify/verify.h"
#include "schemas/text.h"
#include "service/config/toml/units.h"
#include "service/log/wall_clock.h"

namespace millrace {

using namespace recordings;

namespace {

// True: all is good. False: the command has printed what is not. Error: one line.
using RecordingsOutcome = Result<bool, std::string>;

struct RecordingsArguments {
  std::string directory;
  NamedStreams named;
  bool json = false, rows = false;
  std::string pipeline, since, until, before, older_than, tenant;
  std::string to, form = "wav", by = "stream", gaps = "silence";

  // The begin of the command's line, for a shell.
  std::string line(const std::string& command) const {
    return "millrace recordings " + command + ' ' + shell_quoted(directory);
  }
};

using Opened = Result<std::unique_ptr<recording::Recordings>, std::string>;

// Opens the directory. Files that cannot be read are noted and left out.
Opened open_recordings(const RecordingsArguments& arguments, Progress& progress) {
  progress.show("reading " + arguments.directory, Clock::now());
  auto recordings = recording::Recordings::open(arguments.directory);
  if (!recordings) return recordings;
  for (const std::string& problem : (*recordings)->problems()) progress.note(problem);
  progress.clear();
  return recordings;
}

std::string list_line(const RecordingsArguments& arguments) {
  std::string line = arguments.line("ls");
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) line.append(option).append(shell_quoted(value));
  };
  add(" --pipeline ", arguments.pipeline);
  add(" --since ", arguments.since);
  add(" --until ", arguments.until);
  return line + (arguments.json ? " --json" : "");
}

RecordingsOutcome list(const RecordingsArguments& arguments, std::ostream& out,
                       Progress& progress) {
  Filter filter{.pipeline = arguments.pipeline, .named = arguments.named};
  if (const auto set = set_instant("--since", arguments.since, filter.since); !set)
    return set.error();
  if (const auto set = set_instant("--until", arguments.until, filter.until); !set)
    return set.error();
  const auto recordings = open_recordings(arguments, progress);
  if (!recordings) return recordings.error();
  auto misnamed = misnamed_numbers(**recordings, arguments.named, list_line(arguments));
  if (!misnamed.empty()) return misnamed;
  list_streams(**recordings, filter, arguments.json ? ListForm::json_lines : ListForm::table, out);
  return true;
}

RecordingsOutcome show(const RecordingsArguments& arguments, std::ostream& out,
                       Progress& progress) {
  const auto recordings = open_recordings(arguments, progress);
  if (!recordings) return recordings.error();
  const auto stream = find_stream(**recordings, arguments.named,
                                  arguments.line("show") + (arguments.rows ? " --rows" : ""));
  if (!stream) return stream.error();
  if (!arguments.rows) {
    show_events(**recordings, *stream, out, progress);
    return true;
  }
  if (const auto shown = show_rows(**recordings, *stream, out, progress); !shown)
    return shown.error();
  return true;
}

std::string export_line(const RecordingsArguments& arguments) {
  return arguments.line("export") + " --to " + shell_quoted(arguments.to) + " --format " +
         arguments.form + " --by " + arguments.by + " --gaps " + arguments.gaps;
}

RecordingsOutcome export_to(const RecordingsArguments& arguments, Progress& progress) {
  if (arguments.by == "segment" && arguments.gaps == "split")
    return std::string("with --by segment, each gap begins a file anyway: leave out --gaps split");
  const auto recordings = open_recordings(arguments, progress);
  if (!recordings) return recordings.error();
  std::vector<recording::RecordedStream> streams;
  if (arguments.named.empty()) {
    streams = (*recordings)->streams();
  } else {
    auto found = find_with_parts(**recordings, arguments.named, export_line(arguments));
    if (!found) return found.error();
    streams = std::move(*found);
  }
  const AudioFiles how{.form = arguments.form == "flac" ? AudioForm::flac : AudioForm::wav,
                       .by_segment = arguments.by == "segment",
                       .split = arguments.gaps == "split"};
  return export_streams(**recordings, streams, arguments.to, how, progress);
}

// The streams that `rm` removes.
Result<std::vector<recording::RecordedStream>, std::string> chosen(
    const RecordingsArguments& arguments, recording::Recordings& recordings) {
  if (!arguments.named.empty())
    return find_with_parts(recordings, arguments.named, arguments.line("rm"));
  Filter filter{.tenant = arguments.tenant};
  if (!arguments.before.empty()) {
    filter.until = parse_instant(arguments.before);
    if (!filter.until)
      return "--before: \"" + arguments.before +
             "\" must be a date like 2026-11-24 or 2026-11-24T20:55:00Z";
  } else if (!arguments.older_than.empty()) {
    const auto ago = parse_time(arguments.older_than);
    if (!ago) return "--older-than: \"" + arguments.older_than + "\" must be a time like 720h";
    filter.until = (wall_clock() - *ago).count();
  }
  std::vector<recording::RecordedStream> streams;
  for (const recording::RecordedStream* stream : select(recordings, filter))
    streams.push_back(*stream);
  return streams;
}

RecordingsOutcome remove(const RecordingsArguments& arguments, std::ostream& out,
                         Progress& progress) {
  if (!arguments.named.empty() + !arguments.before.empty() + !arguments.older_than.empty() +
          !arguments.tenant.empty() !=
      1)
    return std::string(
        "exactly one of NAME or --number, --before, --older-than and --tenant must be given");
  const auto sealed = seal_abandoned(arguments.directory, progress);
  if (!sealed) return sealed.error();
  const bool sealed_well = print(*sealed, out, progress);
  // The streams of a removal that was interrupted cannot be chosen again: it is completed here.
  auto earlier = complete_removals(arguments.directory, progress);
  if (!earlier) return earlier.error();
  std::string completed;
  if (earlier->files > 0)
    completed = "an earlier removal was completed, " + decimal_bytes(earlier->bytes) + " freed";
  std::set<std::uint64_t> numbers;
  std::string lines;
  {
    const auto recordings = open_recordings(arguments, progress);
    if (!recordings) return recordings.error();
    const auto streams = chosen(arguments, **recordings);
    if (!streams) {
      print(*earlier, progress);
      return streams.error() + (completed.empty() ? "" : "; " + completed);
    }
    for (const recording::RecordedStream& stream : *streams) {
      numbers.insert(stream.meta.number);
      lines += "removed stream " + std::to_string(stream.meta.number) + ", ";
      append_name(lines, stream.meta.name);
      lines += '\n';
    }
  }
  Result<Removed, std::string> removed = Removed();
  if (!numbers.empty()) {
    removed = remove_streams(arguments.directory, numbers, progress);
    if (!removed) return removed.error();
    earlier->errors = {};  // each file was tried again
  }
  print(*earlier, progress);
  print(*removed, progress);
  if (!completed.empty()) out << completed << '\n';
  out << lines << counted(numbers.size(), "stream") << " removed, " << decimal_bytes(removed->bytes)
      << " freed\n";
  for (const recording::FileNumber file : removed->in_use)
    out << recording::Directory::file_name(file)
        << ", which the service is writing, still has removed streams: it is rewritten without "
           "them when it is full, or when the service stops\n";
  if (!sealed->errors.empty() || !earlier->errors.empty() || !removed->errors.empty())
    out << "files that could not be read or written may still have removed streams: when the cause "
           "is gone, run millrace recordings repair "
        << shell_quoted(arguments.directory) << '\n';
  return sealed_well && earlier->good() && removed->good();
}

// The commands below `recordings`. Each has the same RecordingsArguments.
class Commands {
 public:
  using Function =
      std::function<RecordingsOutcome(const RecordingsArguments&, std::ostream&, Progress&)>;

  Commands(Command recordings, Console& console) : recordings_(recordings), console_(console) {}

  Command add(const std::string& name, const std::string& description, Function function) {
    Command command = recordings_.add_command(name, description);
    command.add("DIR", &arguments_->directory, "Directory of the recordings").type(" ").required();
    command.run([name, function, arguments = arguments_, &console = console_] {
      run_with_progress(
          console, "millrace recordings " + name, arguments->directory,
          [&](Progress& progress) { return function(*arguments, console.out, progress); });
    });
    return command;
  }
  RecordingsArguments& arguments() { return *arguments_; }

 private:
  Command recordings_;
  Console& console_;
  std::shared_ptr<RecordingsArguments> arguments_ = std::make_shared<RecordingsArguments>();
};

void add_reading(Commands& commands) {
  RecordingsArguments& to = commands.arguments();
  Command ls =
      commands.add("ls", "List the streams: number, start, length, state, pipeline, name", list);
  ls.add("--pipeline", &to.pipeline, "Only streams of this pipeline").type("NAME");
  add_named_streams(ls, to.named, "Only streams with these names");
  ls.add("--since", &to.since,
         "Only streams opened at this time or later: a date (2026-11-24, in UTC) or an age (2h)")
      .type("TIME");
  ls.add("--until", &to.until, "Only streams opened before this time").type("TIME");
  ls.add("--json", &to.json, "Print a JSON object per stream");

  Command show_one = commands.add(
      "show", "Print the events of a stream and the answers to it as JSON lines", show);
  add_named_streams(show_one, to.named, "Name of the stream");
  show_one.add("--rows", &to.rows,
               "Print the rows instead, as `millrace chunk` does: "
               "[seq,begin,left,size,right,flags,gap]");

  Command check =
      commands.add("verify", "Read every byte and check it; exit code 0 if all is good, else 1",
                   [](const RecordingsArguments& from, std::ostream& out, Progress& progress) {
                     return verify(from.directory, from.rows, out, progress);
                   });
  check.add("--rows", &to.rows,
            "Also cut every whole stream into rows again, and compare them with the recorded "
            "digest");

  Command audio =
      commands.add("export", "Write the audio of streams, and streams.jsonl with all else",
                   [](const RecordingsArguments& from, std::ostream&, Progress& progress) {
                     return export_to(from, progress);
                   });
  add_named_streams(audio, to.named, "Names of the streams; default: all");
  audio.add("--to", &to.to, "Folder of the files; made if it does not exist")
      .type("FOLDER")
      .required();
  audio.add("--format", &to.form, "Format of the audio files")
      .one_of({"wav", "flac"})
      .shows_default();
  audio.add("--by", &to.by, "Write a file per stream or per segment")
      .one_of({"stream", "segment"})
      .shows_default();
  audio
      .add("--gaps", &to.gaps,
           "Where frames are missing: write silence, or begin the next file of the stream")
      .one_of({"silence", "split"})
      .shows_default();
}

void add_changing(Commands& commands) {
  RecordingsArguments& to = commands.arguments();
  commands.add("repair", "Seal files that were left unsealed; print what was cut from them",
               [](const RecordingsArguments& from, std::ostream& out, Progress& progress) {
                 return repair(from.directory, out, progress);
               });

  Command rm =
      commands.add("rm", "Remove streams, and rewrite the files that contain them", remove);
  add_named_streams(rm, to.named, "Remove all streams with these names");
  rm.add("--before", &to.before, "Remove the streams opened before this date").type("DATE");
  rm.add("--older-than", &to.older_than, "Remove the streams opened longer ago, such as 720h")
      .type("DURATION");
  rm.add("--tenant", &to.tenant, "Remove all streams of this tenant").type("NAME");
}

}  // namespace

Result<void, std::string> set_instant(const char* option, const std::string& text,
                                      std::optional<std::int64_t>& into) {
  if (text.empty()) return {};
  if (const auto ago = parse_time(text))
    into = (wall_clock() - *ago).count();
  else
    into = parse_instant(text);
  if (into) return {};
  return std::string(option) + ": \"" + text +
         "\" must be a date like 2026-11-24 or 2026-11-24T20:55:00Z, or a time like 2h";
}

void add_named_streams(Command& command, NamedStreams& into, const std::string& help) {
  command.add("NAME,--name", &into.names, help).type("NAME");
  command.add("--number", &into.numbers, "Streams by their numbers, as ls lists them").type("N");
}

void add_recordings_command(CommandLine& program, Console& console) {
  Commands commands(
      program.add("recordings", "List, print, check, repair, export and remove recorded streams"),
      console);
  add_reading(commands);
  add_changing(commands);
}

}  // namespace millrace
