// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/upkeep.h"

#include <chrono>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/quiet_thread.h"
#include "recording/files/recovery.h"

namespace millrace::recording {
namespace {

constexpr auto retry_period = std::chrono::seconds(1);

Directory open_directory(const std::string& path) {
  auto directory = Directory::open(path, Directory::For::reading);
  if (!directory) throw std::runtime_error("recording.directory: " + directory.error());
  return std::move(*directory);
}

}  // namespace

Upkeep::Upkeep(const std::string& directory, Retention retention, std::function<Duration()> wall,
               RecordingStats& stats, RecorderNotices& notices)
    : directory_(open_directory(directory)),
      retention_(retention),
      wall_(std::move(wall)),
      stats_(stats),
      notices_(notices),
      thread_(quiet_thread("recorder-files", [this] { run(); })) {}

Upkeep::~Upkeep() { sealed_.close(); }

void Upkeep::sealed(FileNumber number) { (void)sealed_.try_push(std::move(number)); }

void Upkeep::run() {
  std::vector<FileNumber> others;
  for (bool more = true; more;) {
    const bool closed = sealed_.closed();
    const Duration wait = work() ? Duration(period) : Duration(retry_period);
    const auto number = sealed_.pop_until(Clock::now() + wait);
    if (number) {
      add(*number);
      sealed_.drain(others);  // a service that starts names all its files
      for (const FileNumber other : others) add(other);
    }
    more = number || !closed;
  }
}

void Upkeep::add(FileNumber number) {
  try {
    due_.insert(number);
  } catch (const std::bad_alloc&) {
    notices_.failed("out of memory");
  }
}

// False if another process does such work, or memory is short: try again soon.
bool Upkeep::work() {
  try {
    if (directory_.has_maintainer()) return false;
    rewrite();
    delete_old();
    return true;
  } catch (const std::system_error& error) {
    notices_.failed(error.what());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// A file stays due until it is rewritten: otherwise a removed stream would be on the disk for good.
void Upkeep::rewrite() {
  const std::set<std::uint64_t> removed =
      due_.empty() ? std::set<std::uint64_t>() : directory_.removed();
  if (!removed.empty()) {
    const FileDescriptor lock = directory_.lock_for_maintenance();
    for (auto number = due_.begin(); number != due_.end();) {
      const auto rewritten = rewrite_without(directory_, *number, removed);
      if (rewritten || is_gone(*number)) {
        number = due_.erase(number);
        continue;
      }
      stats_.errors[FileOperation::rename].add();
      notices_.failed(rewritten.error());
      ++number;
    }
  } else {
    due_.clear();
  }
}

bool Upkeep::is_gone(FileNumber number) const {
  const auto file = directory_.open_to_read(number);
  return !file && file.error() == std::errc::no_such_file_or_directory;
}

void Upkeep::delete_old() {
  const Deleted deleted = apply(retention_, directory_, wall_());
  stats_.segments[SegmentEvent::deleted].add(deleted.files.size());
  stats_.errors[FileOperation::unlink].add(deleted.errors.size());
  for (const std::string& error : deleted.errors) notices_.failed(error);
}

}  // namespace millrace::recording
