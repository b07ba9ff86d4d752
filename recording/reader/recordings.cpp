// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/recordings.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <thread>

#include "base/shared_work.h"

namespace millrace::recording {
namespace {

constexpr FileNumber last_number = std::numeric_limits<FileNumber>::max();
constexpr std::size_t most_recent = 4;
// More threads find no more in the page cache, and wait for one disk.
constexpr std::size_t most_threads = 8;

// A link, or something else that is not a file: it stays unreadable.
bool is_no_file(std::error_code error) {
  return error == std::errc::too_many_symbolic_link_levels || error == std::errc::invalid_argument;
}

// Names the file in the errors of reading it.
Result<std::shared_ptr<RecordingFile>, std::string> read_file(FileDescriptor descriptor,
                                                              FileNumber number) {
  try {
    auto file = RecordingFile::open(std::move(descriptor), number);
    if (!file) return file.error();
    return std::make_shared<RecordingFile>(std::move(*file));
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), Directory::file_name(number));
  }
}

// The parts of a stream follow each other without a loss.
bool continues(const StreamPart& before, const StreamPart& after) {
  return after.first_slice == before.first_slice + before.slices && after.begin == before.end;
}

}  // namespace

Recordings::Recordings(Directory directory, Summaries summaries)
    : directory_(std::move(directory)), summaries_(summaries) {}

Result<std::unique_ptr<Recordings>, std::string> Recordings::open(const std::string& path,
                                                                  Summaries summaries) {
  raise_descriptor_limit();
  auto directory = Directory::open(path, Directory::For::reading);
  if (!directory) return directory.error();
  try {
    std::unique_ptr<Recordings> recordings(new Recordings(std::move(*directory), summaries));
    recordings->refresh();
    return recordings;
  } catch (const std::system_error& error) {
    return path + ": " + error.what();
  }
}

bool Recordings::refresh() {
  listed_ = false;
  streams_.clear();
  // In this order: if a service writes no longer, all that it wrote is read.
  const bool written = directory_.has_writer();
  std::set<std::uint64_t> removed = directory_.removed();
  changed_ |= removed_ != removed;
  removed_ = std::move(removed);
  compare();
  if (summaries_ == Summaries::read) read_files();
  std::string live;
  for (const auto& [number, file] : files_)
    if (written && !file.run.empty()) live = file.run;
  changed_ |= live_run_ != live;
  live_run_ = std::move(live);
  if (!std::exchange(changed_, false)) return false;
  ++changes_;
  return true;
}

// Files that were replaced or deleted stay with the readers that have them.
void Recordings::compare() {
  std::map<FileNumber, File> present;
  for (const FileNumber number : directory_.list())
    if (const auto facts = directory_.facts(number))
      present[number] = {
          .inode = facts->st_ino,
          .bytes = static_cast<std::uint64_t>(facts->st_size),
          .changed = std::int64_t{facts->st_mtim.tv_sec} * 1'000'000'000 + facts->st_mtim.tv_nsec};
  // Also those that were deleted: a reader that follows a stream gets all that was written.
  for (auto& [number, file] : files_)
    if (file.unsealed) changed_ |= file.unsealed->refresh();
  for (auto& [number, before] : files_) {
    const auto found = present.find(number);
    const auto is_same = [&](const File& now) {
      return now.inode == before.inode && before.problem.empty() &&
             (before.unsealed || (now.bytes == before.bytes && now.changed == before.changed));
    };
    if (found == present.end() || !is_same(found->second)) {
      changed_ |= before.read;
      if (found != present.end() && found->second.inode == before.inode)
        found->second.opened = before.opened;
      else
        std::erase_if(recent_, [&](const auto& recent) { return recent.first == number; });
      continue;
    }
    before.bytes = found->second.bytes;
    before.changed = found->second.changed;
    found->second = std::move(before);
  }
  files_ = std::move(present);
}

void Recordings::read_files() {
  std::vector<std::pair<FileNumber, File*>> todo;
  for (auto& [number, file] : files_) {
    if (file.unsealed)
      read_on(number, file);
    else if (!file.read)
      todo.emplace_back(number, &file);
  }
  if (todo.empty()) return;
  const std::size_t threads =
      std::min({todo.size(), most_threads, std::size_t{std::thread::hardware_concurrency()}});
  std::vector<char> exists(todo.size(), 1);
  share_work(
      todo.size(), std::max<std::size_t>(1, threads) - 1, "summaries",
      [&](std::size_t, std::size_t i) { exists[i] = read(todo[i].first, *todo[i].second); },
      [](std::size_t) {});
  for (std::size_t i = 0; i < todo.size(); ++i) {
    changed_ |= todo[i].second->read;
    if (!exists[i]) files_.erase(todo[i].first);
  }
}

// nullopt: it was deleted. Any other error may pass, as if the process has no free descriptor: a
// reader that went on would have less than the directory has.
std::optional<FileDescriptor> Recordings::open_file(FileNumber number) const {
  auto file = directory_.open_to_read(number);
  if (file) return std::move(*file);
  if (file.error() == std::errc::no_such_file_or_directory) return std::nullopt;
  throw std::system_error(file.error(), Directory::file_name(number));
}

// By stream. A forged file may have two parts of one stream: the first one counts.
std::vector<Recordings::Part> Recordings::parts_in(std::vector<StreamPart> listed,
                                                   std::map<std::uint16_t, StreamMeta> channels,
                                                   FileNumber number) {
  if (!std::ranges::is_sorted(listed, {}, &StreamPart::stream))
    std::ranges::stable_sort(listed, {}, &StreamPart::stream);
  std::vector<Part> parts;
  parts.reserve(listed.size());
  for (const StreamPart& part : listed) {
    const auto meta = channels.find(part.channel);
    if (meta == channels.end() || meta->second.number != part.stream) continue;
    if (!parts.empty() && parts.back().part.stream == part.stream) continue;
    parts.push_back({.meta = std::move(meta->second), .file = number, .part = part});
  }
  return parts;
}

// Called on several threads at a time. False: the file was deleted.
bool Recordings::read(FileNumber number, File& file) const {
  std::shared_ptr<RecordingFile> opened;
  try {
    auto descriptor = open_file(number);
    if (!descriptor) return false;
    auto read = read_file(std::move(*descriptor), number);
    if (read)
      opened = std::move(*read);
    else
      file.problem = read.error();
  } catch (const std::system_error& error) {
    if (!is_no_file(error.code())) throw;
    file.problem = error.what();
  }
  if (!opened) return true;
  file.run = opened->head().run;
  file.chunks = opened->chunks().size();
  std::vector<StreamPart> listed = opened->parts();
  if (opened->sealed()) {
    file.parts = parts_in(std::move(listed), std::move(*opened).channels(), number);
  } else {
    file.parts = parts_in(std::move(listed), opened->channels(), number);
    file.unsealed = std::move(opened);
  }
  file.read = true;
  return true;
}

// A file that was not sealed, after its refresh().
void Recordings::read_on(FileNumber number, File& file) {
  const std::size_t chunks = file.unsealed->chunks().size();
  const bool sealed = file.unsealed->sealed();
  if (file.chunks == chunks && !sealed) return;
  changed_ = true;
  file.parts = parts_in(file.unsealed->parts(), file.unsealed->channels(), number);
  file.run = file.unsealed->head().run;
  file.chunks = chunks;
  if (!sealed) return;
  const auto opened = std::exchange(file.unsealed, nullptr);
  opened->close_if_sealed();
  keep_open(number, opened);
}

Recordings::Parts Recordings::parts_of(std::uint64_t stream, FileNumber first,
                                       FileNumber last) const {
  Parts parts;
  const auto end = files_.upper_bound(last);
  for (auto at = files_.lower_bound(first); at != end; ++at) {
    const File& file = at->second;
    const auto part = std::ranges::lower_bound(file.parts, stream, {}, stream_of_part);
    if (part != file.parts.end() && part->part.stream == stream) parts.push_back(&*part);
  }
  return parts;
}

// The stream that has these parts, which are by file. Requires: there is a part.
RecordedStream Recordings::stream_of(std::span<const Part* const> parts) const {
  const Part& first = *parts.front();
  const Part& last = *parts.back();
  RecordedStream stream{.meta = first.meta,
                        .begin = first.part.first_event == 0 ? first.part.begin : 0,
                        .first_file = first.file,
                        .last_file = last.file,
                        .has_open = first.part.first_event == 0,
                        .unbroken = first.part.first_event == 0 && first.part.first_slice == 0};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StreamPart& part = parts[i]->part;
    stream.frames += part.frames;
    stream.end = std::max(stream.end, part.end);
    if (part.lost || (i > 0 && !continues(parts[i - 1]->part, part))) stream.unbroken = false;
  }
  stream.whole = stream.unbroken && last.part.closed && last.part.complete;
  const std::string run = run_of(last.file);
  stream.open = !last.part.closed && !run.empty() && run == live_run_;
  return stream;
}

const std::vector<RecordedStream>& Recordings::streams() {
  if (std::exchange(listed_, true)) return streams_;
  Parts parts;
  for (const auto& [number, file] : files_)
    for (const Part& part : file.parts) parts.push_back(&part);
  const auto stream = [](const Part* part) { return part->part.stream; };
  streams_.reserve(parts.size());
  std::ranges::stable_sort(parts, {}, stream);
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto end = std::ranges::upper_bound(begin, parts.end(), stream(*begin), {}, stream);
    if (!is_removed(stream(*begin))) streams_.push_back(stream_of(std::span(begin, end)));
    begin = end;
  }
  return streams_;
}

std::optional<RecordedStream> Recordings::find(std::uint64_t number) const {
  const Parts parts = parts_of(number, 0, last_number);
  if (parts.empty() || is_removed(number)) return std::nullopt;
  return stream_of(parts);
}

std::vector<RecordedStream> Recordings::find(const std::string& name) {
  std::vector<RecordedStream> found;
  for (const RecordedStream& stream : streams())
    if (stream.meta.name == name) found.push_back(stream);
  return found;
}

std::vector<std::string> Recordings::problems() const {
  std::vector<std::string> lines;
  for (const auto& [number, file] : files_)
    if (!file.problem.empty()) lines.push_back(file.problem);
  return lines;
}

Result<std::shared_ptr<RecordingFile>, std::string> Recordings::file(FileNumber number) {
  const auto found = files_.find(number);
  if (found == files_.end()) return std::string("deleted");
  File& file = found->second;
  if (file.unsealed) return file.unsealed;
  const std::string damaged = "damaged: file " + std::to_string(number);
  if (!file.problem.empty()) return damaged;
  auto opened = file.opened.lock();
  if (!opened) {
    auto descriptor = open_file(number);
    if (!descriptor) return std::string("deleted");
    auto read = read_file(std::move(*descriptor), number);
    if (!read) return damaged;
    opened = std::move(*read);
    opened->close_if_sealed();
  }
  keep_open(number, opened);
  return opened;
}

void Recordings::keep_open(FileNumber number, const std::shared_ptr<RecordingFile>& file) {
  files_[number].opened = file;
  std::erase_if(recent_, [&](const auto& recent) { return recent.second == file; });
  if (recent_.size() >= most_recent) recent_.pop_back();
  recent_.insert(recent_.begin(), {number, file});
}

std::vector<FileNumber> Recordings::files_of(const RecordedStream& stream) const {
  std::vector<FileNumber> numbers;
  if (summaries_ == Summaries::read) {
    const FileNumber last = stream.open ? last_number : stream.last_file;
    for (const Part* part : parts_of(stream.meta.number, stream.first_file, last))
      numbers.push_back(part->file);
    return numbers;
  }
  const auto end = files_.upper_bound(stream.last_file);
  for (auto file = files_.lower_bound(stream.first_file); file != end; ++file)
    numbers.push_back(file->first);
  return numbers;
}

std::string Recordings::run_of(FileNumber number) const {
  const auto found = files_.find(number);
  return found == files_.end() ? std::string() : found->second.run;
}

}  // namespace millrace::recording
