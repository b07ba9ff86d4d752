// SPDX-License-Identifier: Apache-2.0
#include "recording/files/rewrite.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "recording/files/file.h"
#include "recording/files/recovery.h"
#include "recording/files/segment_writer.h"

namespace millrace::recording {
namespace {

using Status = Result<void, std::error_code>;

constexpr std::size_t write_bytes = 4 << 20;

// Copies slices of one file to another. Confined to one thread.
class Copy {
 public:
  Copy(SegmentFile& from, SegmentWriter& to, const std::function<bool(std::uint64_t)>& keep)
      : from_(from), to_(to), keep_(keep) {}

  Status run(Rewritten& result) {
    for (std::size_t chunk = 0; chunk < from_.chunks().size(); ++chunk) {
      const auto messages = from_.messages(chunk);
      if (!messages) continue;
      for (const SliceMessage& message : *messages) add(message, result);
      if (to_.uncommitted() < write_bytes) continue;
      if (const auto written = to_.write(); !written) return written;
    }
    for (const LostPart& lost : result.parts.losses()) to_.add_loss(lost.stream);
    return to_.seal();
  }

 private:
  void add(const SliceMessage& message, Rewritten& result) {
    const auto meta = from_.channels().find(message.channel);
    if (meta == from_.channels().end()) return skip(message, result);
    if (!keep_(meta->second.number)) return;
    const auto slice =
        decoder_.slice(message.bytes, meta->second.number, meta->second.frames.bytes());
    if (!slice || !result.parts.can_follow(message.number, *slice)) return skip(message, result);
    to_.add_encoded(meta->second, message.number, message.wall, *slice, message.bytes);
    result.parts.add(message.channel, message.number, *slice);
  }

  static void skip(const SliceMessage& message, Rewritten& result) {
    result.unread_bytes += message.bytes.size();
    result.unread_channels.insert(message.channel);
  }

  SegmentFile& from_;
  SegmentWriter& to_;
  const std::function<bool(std::uint64_t)>& keep_;
  SliceDecoder decoder_;
};

// Sets the time of the last write: retention deletes by it.
Status copy_time(int from, int to) {
  struct stat facts {};
  if (::fstat(from, &facts) != 0) return last_error();
  const std::array<timespec, 2> times{facts.st_atim, facts.st_mtim};
  if (::futimens(to, times.data()) != 0) return last_error();
  return {};
}

}  // namespace

std::uint64_t next_stream(const SegmentFile& file) {
  std::uint64_t next = std::max<std::uint64_t>(1, file.head().first_stream);
  for (const auto& [channel, meta] : file.channels()) next = std::max(next, meta.number + 1);
  return next;
}

Result<Rewritten, std::string> rewrite(const Directory& directory, SegmentFile& from,
                                       const FileHead& head,
                                       const std::function<bool(std::uint64_t stream)>& keep) {
  const auto attempt = [&]() -> Result<Rewritten, std::error_code> {
    // In this order, so that a file that is deleted now is not brought back (Directory::remove).
    auto file = directory.create_temporary(head.file);
    if (!file) return file.error();
    const auto old = directory.open_to_read(head.file);
    if (!old) return old.error();
    // The writer owns its descriptor; the time is set after the last write.
    const FileDescriptor again(::dup(file->get()));
    auto writer = SegmentWriter::begin(std::move(*file), head);
    if (!writer) return writer.error();
    Rewritten result;
    if (const auto copied = Copy(from, *writer, keep).run(result); !copied) return copied.error();
    if (const auto set = copy_time(old->get(), again.get()); !set) return set.error();
    result.bytes = file_size(again.get());
    if (const auto renamed = directory.replace(head.file); !renamed) return renamed.error();
    if (const auto synced = directory.sync(); !synced) return synced.error();
    return result;
  };
  auto result = attempt();
  if (result) return std::move(*result);
  directory.remove_temporary(head.file);
  return Directory::file_name(head.file) + ": " + result.error().message();
}

Result<std::uint64_t, std::string> rewrite_without(const Directory& directory, FileNumber number,
                                                   const std::set<std::uint64_t>& streams) {
  auto file = SegmentFile::open(directory, number);
  if (!file) return file.error();
  const auto listed = [&](const auto& entry) { return streams.contains(entry.second.number); };
  if (std::ranges::none_of(file->channels(), listed)) return 0;
  if (!file->sealed())
    return Directory::file_name(number) + ": is not sealed; repair the file first";
  FileHead head = file->head();
  // The number of a removed stream is never used again.
  head.first_stream = next_stream(*file);
  const auto result = rewrite(directory, *file, head,
                              [&](std::uint64_t stream) { return !streams.contains(stream); });
  if (!result) return result.error();
  return file->size() - std::min(file->size(), result->bytes);
}

}  // namespace millrace::recording
