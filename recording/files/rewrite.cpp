// SPDX-License-Identifier: Apache-2.0
#include "recording/files/rewrite.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "recording/files/file.h"
#include "recording/files/file_writer.h"
#include "recording/files/recovery.h"

namespace millrace::recording {
namespace {

using Status = Result<void, std::error_code>;

constexpr std::size_t write_bytes = 4 << 20;

// Copies slices of one file to another. Confined to one thread.
class Copy {
 public:
  Copy(RecordingFile& from, FileWriter& to, const std::function<bool(std::uint64_t)>& keep)
      : from_(from), to_(to), keep_(keep) {}

  Status run(Rewritten& result) {
    for (std::size_t chunk = 0; chunk < from_.chunks().size(); ++chunk) {
      if (goes(from_.chunks()[chunk])) continue;
      if (const auto messages = from_.messages(chunk))
        for (const SliceMessage& message : *messages) add(message, result);
      else
        add_damaged(chunk, result);
      if (to_.uncommitted() < write_bytes) continue;
      if (const auto written = to_.write(); !written) return written;
    }
    if (from_.sealed())
      list_parts(result);
    else
      for (const LostPart& lost : result.parts.losses()) to_.add_loss(lost.stream);
    for (const std::uint64_t stream : lost_) to_.add_loss(stream);
    return to_.seal();
  }

 private:
  // Only removed streams have slices in it.
  bool goes(const ChunkPlace& place) const {
    return !place.channels.empty() && std::ranges::all_of(place.channels, [&](auto channel) {
      const auto meta = from_.channels().find(channel);
      return meta != from_.channels().end() && !keep_(meta->second.number);
    });
  }

  void add_damaged(std::size_t chunk, Rewritten& result) {
    const ChunkPlace& place = from_.chunks()[chunk];
    std::set<std::uint64_t> streams;
    bool all_stay = !place.channels.empty();
    for (const std::uint16_t channel : place.channels) {
      const auto meta = from_.channels().find(channel);
      const bool stays = meta != from_.channels().end() && keep_(meta->second.number);
      if (stays) streams.insert(meta->second.number);
      all_stay = all_stay && stays;
    }
    const auto raw = all_stay ? from_.raw_chunk(chunk) : std::nullopt;
    if (raw)
      to_.copy(*raw, from_.channels());
    else
      lost_.insert(streams.begin(), streams.end());
    DamagedChunks& damaged = raw ? result.kept : result.left_out;
    ++damaged.count;
    damaged.bytes += place.bytes;
    damaged.streams.merge(streams);
  }

  // The parts as the old file lists them: with the slices that are in damaged chunks, so that
  // readers and `verify` know of these, and with earlier losses.
  void list_parts(const Rewritten& result) {
    for (const StreamPart& part : from_.parts()) {
      const auto meta = from_.channels().find(part.channel);
      if (meta == from_.channels().end() || meta->second.number != part.stream) continue;
      if (!keep_(part.stream)) continue;
      to_.set_part(part, meta->second);
      const StreamPart* copied = result.parts.find(part.stream);
      const bool all = copied && copied->slices == part.slices;
      if (!all && !result.kept.streams.contains(part.stream)) lost_.insert(part.stream);
    }
  }

  void add(const SliceMessage& message, Rewritten& result) {
    const auto meta = from_.channels().find(message.channel);
    if (meta == from_.channels().end()) return skip(message, result);
    if (!keep_(meta->second.number)) return;
    const auto slice =
        decoder_.slice(message.bytes, meta->second.number, meta->second.frames.bytes());
    if (!slice || !result.parts.can_follow(message.number, *slice)) {
      lost_.insert(meta->second.number);
      return skip(message, result);
    }
    to_.copy(meta->second, message, *slice);
    result.parts.add(message.channel, message.number, *slice);
  }

  static void skip(const SliceMessage& message, Rewritten& result) {
    result.unread_bytes += message.bytes.size();
    result.unread_channels.insert(message.channel);
  }

  RecordingFile& from_;
  FileWriter& to_;
  const std::function<bool(std::uint64_t)>& keep_;
  SliceDecoder decoder_;
  std::set<std::uint64_t> lost_;  // streams of which slices were left out
};

// "3, 5 to 9"
std::string listed(const std::set<std::uint64_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::uint64_t first = *at;
    std::uint64_t last = first;
    while (++at != numbers.end() && *at == last + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(first);
    if (last > first) text += (last == first + 1 ? ", " : " to ") + std::to_string(last);
  }
  return text;
}

// A line about damaged chunks, if there are any.
void add_line(const std::string& file, const DamagedChunks& damaged, const std::string& what,
              const std::string& then, std::vector<std::string>& lines) {
  if (damaged.count == 0) return;
  const std::string streams =
      damaged.streams.empty() ? "unknown streams" : "streams " + listed(damaged.streams);
  lines.push_back(file + ": " + std::to_string(damaged.bytes) + " bytes in " +
                  std::to_string(damaged.count) + (damaged.count == 1 ? " chunk" : " chunks") +
                  " were damaged before, and " + what + ": slices of " + streams + then);
}

// The facts of a file whose metadata is damaged, from the file before it.
FileHead head_after(const Directory& directory, const RecordingFile& file) {
  FileHead head = file.head();
  const std::string unknown(32, '0');
  head.run = unknown;
  if (head.id.empty()) head.id = unknown;
  const std::vector<FileNumber> numbers = directory.list();
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (*number >= head.file) continue;
    const auto before = RecordingFile::open(directory, *number, Reading::copied);
    if (!before) continue;
    head.first_stream = std::max(head.first_stream, next_stream(*before));
    if (!before->head().run.empty()) break;
  }
  return head;
}

// It is sealed, and has some of these streams and no other.
bool has_only(const RecordingFile& file, const std::set<std::uint64_t>& streams) {
  return file.sealed() && !file.channels().empty() &&
         std::ranges::all_of(file.channels(), [&](const auto& entry) {
           return streams.contains(entry.second.number);
         });
}

bool is_newest(const Directory& directory, FileNumber number) {
  const std::vector<FileNumber> files = directory.list();
  return !files.empty() && files.back() == number;
}

}  // namespace

std::string unreadable_line(FileNumber file, std::error_code why) {
  return Directory::file_name(file) +
         ": cannot be read whole, and stays as it is: " + why.message();
}

void keep_times(int file, const struct stat& before, FileNumber number,
                std::vector<std::string>& notices) {
  const std::array<timespec, 2> times{before.st_atim, before.st_mtim};
  if (::futimens(file, times.data()) != 0)
    notices.push_back(Directory::file_name(number) +
                      ": counts as written now: its time cannot be " +
                      "set: " + last_error().message());
}

std::uint64_t next_stream(const RecordingFile& file) {
  std::uint64_t next = std::max<std::uint64_t>(1, file.head().first_stream);
  for (const auto& [channel, meta] : file.channels()) next = std::max(next, meta.number + 1);
  return next;
}

Result<Rewritten, std::string> rewrite(const Directory& directory, RecordingFile& from,
                                       const std::function<bool(std::uint64_t stream)>& keep) {
  FileHead head = from.head().run.empty() ? head_after(directory, from) : from.head();
  // The number of a stream is never used again, also if the new file does not have the stream.
  head.first_stream = std::max(head.first_stream, next_stream(from));
  const auto attempt = [&]() -> Result<Rewritten, std::error_code> {
    // In this order, so that a file that is deleted now is not brought back (Directory::remove).
    auto file = directory.create_temporary(head.file);
    if (!file) return file.error();
    const auto old = directory.open_to_read(head.file);
    if (!old) return old.error();
    struct stat before {};
    if (::fstat(old->get(), &before) != 0) return last_error();
    // The writer owns its descriptor; the time is set after the last write.
    const FileDescriptor again(::dup(file->get()));
    auto writer = FileWriter::begin(std::move(*file), head, 0);
    if (!writer) return writer.error();
    Rewritten result;
    if (const auto copied = Copy(from, *writer, keep).run(result); !copied) return copied.error();
    // Zeros stand for what could not be read. It may be readable later.
    if (from.unreadable()) return from.unreadable();
    keep_times(again.get(), before, head.file, result.notices);
    result.bytes = file_size(again.get());
    if (const auto renamed = directory.replace(head.file); !renamed) return renamed.error();
    if (const auto synced = directory.sync(); !synced) return synced.error();
    return result;
  };
  auto result = attempt();
  if (result) return std::move(*result);
  directory.remove_temporary(head.file);
  if (from.unreadable()) return unreadable_line(head.file, from.unreadable());
  return Directory::file_name(head.file) + ": " + result.error().message();
}

Result<Cleared, std::string> delete_without(const Directory& directory, FileNumber number,
                                            const std::set<std::uint64_t>& streams, Newest newest) {
  const auto file = RecordingFile::open(directory, number, Reading::copied);
  if (!file) return file.error();
  if (!has_only(*file, streams)) return Cleared{};
  Result<void, std::error_code> done;
  if (is_newest(directory, number)) {
    if (newest == Newest::stays) return Cleared{};
    done = directory.keep_next_stream(std::max(directory.next_stream(), next_stream(*file)));
  }
  if (done) done = directory.remove(number);
  if (done) done = directory.sync();
  if (!done) return Directory::file_name(number) + ": " + done.error().message();
  return Cleared{.changed = true, .saved_bytes = file->size()};
}

Result<Cleared, std::string> rewrite_without(const Directory& directory, FileNumber number,
                                             const std::set<std::uint64_t>& streams) {
  auto file = RecordingFile::open(directory, number, Reading::copied);
  if (!file) return file.error();
  const std::string name = Directory::file_name(number);
  const auto is_removed = [&](const auto& entry) { return streams.contains(entry.second.number); };
  if (std::ranges::none_of(file->channels(), is_removed)) return Cleared{};
  if (!file->sealed()) return name + ": is not sealed; repair the file first";
  auto deleted = delete_without(directory, number, streams, Newest::stays);
  if (!deleted || deleted->changed) return deleted;
  const auto result =
      rewrite(directory, *file, [&](std::uint64_t stream) { return !streams.contains(stream); });
  if (!result) return result.error();
  Cleared cleared{.changed = true,
                  .saved_bytes = file->size() - std::min(file->size(), result->bytes),
                  .notices = result->notices};
  add_line(name, result->kept, "stay as they are", " cannot be read", cleared.damages);
  add_line(name, result->left_out, "are left out, because a removed stream may have slices in them",
           " are lost", cleared.damages);
  for (const Damage& damage : file->damages())
    if (!std::ranges::binary_search(file->chunks(), damage.offset, {}, &ChunkPlace::offset))
      cleared.damages.push_back(name + ": " + damage.why);
  if (result->unread_bytes > 0)
    cleared.damages.push_back(name + ": " + std::to_string(result->unread_bytes) +
                              " bytes of slices that are not valid are left out");
  return cleared;
}

}  // namespace millrace::recording
