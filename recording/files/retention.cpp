// SPDX-License-Identifier: Apache-2.0
#include "recording/files/retention.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace millrace::recording {
namespace {

Duration since_1970(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// nullopt for a file that was deleted, and for anything else that is no file.
std::optional<struct stat> facts_of(const Directory& directory, FileNumber number) {
  const auto facts = directory.facts(number);
  return facts && S_ISREG(facts->st_mode) ? facts : std::nullopt;
}

std::vector<StoredFile> stored_files(const Directory& directory) {
  std::vector<StoredFile> files;
  for (const FileNumber number : directory.list())
    if (const auto facts = facts_of(directory, number))
      files.push_back({.number = number,
                       .bytes = static_cast<std::uint64_t>(facts->st_size),
                       .written = since_1970(facts->st_mtim)});
  return files;
}

// The indices of a longest series of files whose times do not descend, and are not in the future.
std::vector<std::size_t> written_in_order(const std::vector<StoredFile>& files, Duration now) {
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> ends;  // per length of a series: its last file, with the earliest time
  std::vector<std::size_t> before(files.size(), none);
  const auto time = [&](std::size_t i) { return files[i].written; };
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].written > now) continue;
    const auto end = std::ranges::upper_bound(ends, files[i].written, {}, time);
    if (end != ends.begin()) before[i] = *(end - 1);
    if (end == ends.end())
      ends.push_back(i);
    else
      *end = i;
  }
  std::vector<std::size_t> series(ends.size());
  std::size_t at = ends.empty() ? none : ends.back();
  for (std::size_t i = series.size(); i-- > 0; at = before[at]) series[i] = at;
  return series;
}

// When the files were written at the latest: before the next file that fits, or before now.
std::vector<Duration> times_of(const std::vector<StoredFile>& files, Duration now) {
  const std::vector<std::size_t> series = written_in_order(files, now);
  std::vector<Duration> times(files.size(), now);
  std::size_t next = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (next < series.size() && series[next] < i) ++next;
    if (next < series.size()) times[i] = files[series[next]].written;
  }
  return times;
}

}  // namespace

FilesToDelete files_to_delete(const std::vector<StoredFile>& files, const Retention& retention,
                              Duration now) {
  const std::vector<Duration> times = times_of(files, now);
  std::uint64_t held = 0;
  for (const StoredFile& file : files) held += file.bytes;
  FilesToDelete deleted;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_old = now - times[i] > retention.keep_for;
    const bool is_newest = i + 1 == files.size();
    if (is_newest ? !(retention.newest && is_old) : !is_old && held <= retention.keep) break;
    deleted.files.push_back(files[i].number);
    if (is_old) ++deleted.by_age;
    held -= files[i].bytes;
  }
  return deleted;
}

std::uint64_t stored_bytes(const Directory& directory) {
  std::uint64_t bytes = 0;
  for (const StoredFile& file : stored_files(directory)) bytes += file.bytes;
  return bytes;
}

std::optional<Duration> latest_change(const std::string& directory, Duration now) {
  std::optional<Duration> latest;
  const auto opened = Directory::open(directory, Directory::For::reading);
  if (!opened) return latest;
  try {
    for (const FileNumber number : opened->list()) {
      const auto facts = facts_of(*opened, number);
      if (!facts) continue;
      // A copy or a restore sets the time of the last write, but not that of the last change.
      for (const timespec& time : {facts->st_mtim, facts->st_ctim})
        if (since_1970(time) <= now) latest = std::max(latest, std::optional(since_1970(time)));
    }
  } catch (const std::system_error&) {
  }
  return latest;
}

bool ClockTrust::believes(Duration wall, Time now) {
  const Duration offset = wall - now.time_since_epoch();
  const bool is_known = offset_ ? std::chrono::abs(offset - *offset_) <= step
                                : changed_ && wall - *changed_ <= settling;
  if (!is_known)
    settled_ = now + settling;
  else if (!offset_)
    settled_ = now;
  offset_ = offset;
  return now >= settled_;
}

Deleted apply(const Retention& retention, const Directory& directory, Duration now) {
  const std::vector<StoredFile> files = stored_files(directory);
  const FilesToDelete chosen = files_to_delete(files, retention, now);
  Deleted deleted{.by_age = chosen.by_age};
  for (const FileNumber number : chosen.files) {
    if (const auto removed = directory.remove(number); !removed) {
      deleted.errors.push_back(Directory::file_name(number) + ": " + removed.error().message());
      continue;
    }
    const auto file = std::ranges::find(files, number, &StoredFile::number);
    deleted.files.push_back(number);
    deleted.bytes += file->bytes;
  }
  if (!deleted.files.empty()) {
    if (const auto synced = directory.sync(); !synced)
      deleted.errors.push_back(directory.path() + ": " + synced.error().message());
  }
  return deleted;
}

}  // namespace millrace::recording
