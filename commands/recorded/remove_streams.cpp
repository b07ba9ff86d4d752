// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/remove_streams.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "commands/recorded/repair.h"
#include "recording/files/recording_file.h"
#include "recording/files/recovery.h"

namespace millrace::recordings {

using recording::Cleared;
using recording::Directory;
using recording::FileNumber;
using recording::Newest;
using recording::Reading;
using recording::RecordingFile;

namespace {

// False also if it cannot be opened: seal_abandoned() reports that.
bool is_sealed(const Directory& directory, FileNumber number) {
  const auto file = RecordingFile::open(directory, number, Reading::copied);
  return file && file->sealed();
}

bool has_any(const Directory& directory, FileNumber number,
             const std::set<std::uint64_t>& streams) {
  const auto file = RecordingFile::open(directory, number, Reading::copied);
  return file && std::ranges::any_of(file->channels(), [&](const auto& channel) {
           return streams.contains(channel.second.number);
         });
}

// Takes over the outcome for one file. False: it stays as it is.
bool add(Result<Cleared, std::string> cleared, const Directory& directory, FileNumber number,
         Removed& result) {
  if (!cleared) {
    // Retention may have deleted it.
    if (directory.exists(number)) result.errors.push_back(cleared.error());
    return false;
  }
  if (cleared->changed) ++result.files;
  result.bytes += cleared->saved_bytes;
  for (std::string& line : cleared->damages) result.damages.push_back(std::move(line));
  for (std::string& line : cleared->notices) result.notices.push_back(std::move(line));
  return cleared->changed;
}

// Deletes the newest file if these are all its streams, and no process writes the directory.
// Requires: lock_for_maintenance.
bool delete_newest(Directory& directory, const std::set<std::uint64_t>& streams, Removed& result) {
  const std::vector<FileNumber> files = directory.list();
  if (files.empty() || !directory.lock_for_writing()) return false;
  auto deleted = recording::delete_without(directory, files.back(), streams, Newest::goes);
  directory.unlock_writing();
  return deleted && add(std::move(deleted), directory, files.back(), result);
}

// The service waits for the lock when it seals a file, so it is held for one file at a time.
void delete_files(const Directory& directory, const std::set<std::uint64_t>& streams,
                  Removed& result) {
  result.errors = directory.remove_indexes();
  for (const FileNumber number : directory.list()) {
    const auto lock = directory.lock_for_maintenance();
    if (!is_sealed(directory, number)) continue;
    add(recording::delete_without(directory, number, streams, Newest::stays), directory, number,
        result);
  }
}

void rewrite_files(Directory& directory, const std::set<std::uint64_t>& streams, Removed& result,
                   Progress& progress) {
  for (const FileNumber number : directory.list()) {
    progress.show("rewriting " + Directory::file_name(number), Clock::now());
    const auto lock = directory.lock_for_maintenance();
    if (!is_sealed(directory, number)) {
      if (has_any(directory, number, streams)) result.in_use.push_back(number);
      continue;
    }
    auto cleared = recording::rewrite_without(directory, number, streams);
    const bool newest = !cleared && number == directory.list().back();
    if (newest && delete_newest(directory, streams, result)) continue;
    add(std::move(cleared), directory, number, result);
  }
}

bool is_full(const std::system_error& error) {
  return error.code() == std::errc::no_space_on_device || error.code().value() == EDQUOT;
}

// A service that seals a file later sees these streams, and leaves them out.
void note(const Directory& directory, const std::set<std::uint64_t>& streams) {
  const auto lock = directory.lock_for_maintenance();
  directory.add_removed(streams);
}

}  // namespace

void print(const Removed& removed, Progress& progress) {
  progress.clear();
  for (const auto* lines : {&removed.damages, &removed.notices, &removed.errors})
    for (const std::string& line : *lines) progress.note(line);
}

Result<Removed, std::string> complete_removals(const std::string& path, Progress& progress) {
  auto directory = open_to_change(path);
  if (!directory) return directory.error();
  {
    const auto lock = directory->lock_for_maintenance();
    directory->remove_temporaries();
  }
  Removed result;
  const std::set<std::uint64_t> streams = directory->removed();
  if (streams.empty()) return result;
  delete_files(*directory, streams, result);
  rewrite_files(*directory, streams, result, progress);
  return result;
}

Result<Removed, std::string> remove_streams(const std::string& path,
                                            const std::set<std::uint64_t>& streams,
                                            Progress& progress) {
  auto directory = open_to_change(path);
  if (!directory) return directory.error();
  Removed before;
  try {
    note(*directory, streams);
  } catch (const std::system_error& error) {
    if (!is_full(error)) throw;
    delete_files(*directory, streams, before);
    const auto lock = directory->lock_for_maintenance();
    if (before.files == 0 && !delete_newest(*directory, streams, before)) throw;
    directory->add_removed(streams);
  }
  if (directory->list().empty()) return before;
  auto result = complete_removals(path, progress);
  if (!result) return result;
  result->files += before.files;
  result->bytes += before.bytes;
  return result;
}

}  // namespace millrace::recordings
