// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/export/export.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <variant>

#include "base/file_descriptor.h"
#include "commands/recorded/export/stream_record.h"
#include "recording/files/file.h"
#include "recording/reader/joined_reader.h"

namespace millrace::recordings {
namespace {

std::string message(int error) { return std::generic_category().message(error); }

Result<FileDescriptor, std::string> open_folder(const std::string& path) {
  // Without slashes at the end, its parent is that of the folder.
  const std::filesystem::path made = std::filesystem::path(path + '/').parent_path();
  std::error_code error;
  if (made.has_parent_path()) std::filesystem::create_directories(made.parent_path(), error);
  // The exported frames are as private as the recordings.
  if (::mkdir(made.c_str(), 0700) != 0 && !error) error.assign(errno, std::generic_category());
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder)
    return path + ": " + (error && error.value() != EEXIST ? error.message() : message(errno));
  return folder;
}

Result<FileDescriptor, std::string> create_list(int folder, const std::string& path) {
  const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor list(::openat(folder, "streams.jsonl", flags, 0600));
  if (list) return list;
  if (errno == EEXIST) return path + ": has an export already; choose another folder";
  return path + "/streams.jsonl: " + message(errno);
}

// Why the audio of this stream cannot be written; nullopt if it can.
std::optional<std::string> obstacle(const recording::RecordedStream& stream,
                                    const AudioFiles& how) {
  if (auto why = unsupported(stream.meta.frames, how.form)) return why;
  const bool silence = !how.by_segment && !how.split;
  const std::uint64_t longest = AudioOutput::most_bytes / stream.meta.frames.bytes();
  if (silence && stream.end - stream.begin > longest)
    return std::string("with silence it would have more than 4 GiB: use --gaps split");
  return std::nullopt;
}

// Exports streams one by one. Confined to one thread.
class Export {
 public:
  Export(recording::Recordings& recordings, FileDescriptor folder, FileDescriptor list,
         const AudioFiles& how, Progress& progress)
      : recordings_(recordings),
        folder_(std::move(folder)),
        list_(std::move(list)),
        how_(how),
        progress_(progress) {}

  Result<void, std::string> add(const recording::StreamParts& parts) {
    const recording::RecordedStream stream = summary_of(parts);
    const auto why = obstacle(stream, how_);
    if (why) note(stream, *why);
    recording::JoinedReader reader(recordings_, parts);
    StreamRecord record(parts);
    PartFiles files(folder_.get(), stream, how_);
    while (auto item = reader.next()) {
      record.add(*item, reader.opened_steady());
      auto* read = std::get_if<recording::RecordedEvent>(&*item);
      if (read == nullptr || why || !reader.counts_once(*read)) continue;
      if (const auto added = files.add(*read); !added) return added;
    }
    if (const auto finished = files.finish(); !finished) return finished;
    const auto missing = reader.missing();
    note_losses(stream, missing);
    const std::string line = record.line(files.files(), missing);
    if (const auto written = recording::write_all(list_.get(), std::as_bytes(std::span(line)));
        !written)
      return "streams.jsonl: " + written.error().message();
    return {};
  }

  bool complete() const { return complete_; }

 private:
  // A part that was not recorded, or that retention has deleted, is no loss.
  void note_losses(const recording::RecordedStream& stream,
                   const std::vector<recording::MissingPart>& missing) {
    const auto lost = std::ranges::find_if(missing, [](const recording::MissingPart& part) {
      return part.why == "not found" || part.why.starts_with("damaged");
    });
    if (lost == missing.end()) return;
    complete_ = false;
    progress_.note("stream " + std::to_string(stream.meta.number) + ": incomplete from position " +
                   std::to_string(lost->begin) + ": " + lost->why);
  }

  // The streams of a pipeline have the same frames, so the first one is enough.
  void note(const recording::RecordedStream& stream, const std::string& why) {
    complete_ = false;
    if (noted_.insert(stream.meta.pipeline + ' ' + why).second)
      progress_.note("stream " + std::to_string(stream.meta.number) + ", pipeline " +
                     stream.meta.pipeline + ": no audio file: " + why);
  }

  recording::Recordings& recordings_;
  const FileDescriptor folder_, list_;
  const AudioFiles how_;
  Progress& progress_;
  std::set<std::string> noted_;
  bool complete_ = true;
};

}  // namespace

Result<bool, std::string> export_streams(recording::Recordings& recordings,
                                         const std::vector<recording::RecordedStream>& streams,
                                         const std::string& path, const AudioFiles& how,
                                         Progress& progress) {
  auto folder = open_folder(path);
  if (!folder) return folder.error();
  auto list = create_list(folder->get(), path);
  if (!list) return list.error();
  Export all(recordings, std::move(*folder), std::move(*list), how, progress);
  std::size_t done = 0;
  const auto joined = join_parts(streams);
  for (const recording::StreamParts& parts : joined) {
    const Time now = Clock::now();
    if (progress.due(now))
      progress.show("export: " + std::to_string(done) + " of " + counted(joined.size(), "stream"),
                    now);
    if (const auto added = all.add(parts); !added) return path + "/" + added.error();
    ++done;
  }
  return all.complete();
}

}  // namespace millrace::recordings
