// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/upkeep.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/quiet_thread.h"
#include "recording/files/recording_file.h"
#include "recording/files/recovery.h"

namespace millrace::recording {
namespace {

constexpr auto retry_period = std::chrono::seconds(1);

// Holds the lock of the writer, if it is wanted, and can be had now.
class WritingLock {
 public:
  WritingLock(Directory& directory, bool wanted)
      : directory_(directory), held_(wanted && try_lock(directory)) {}
  ~WritingLock() { directory_.unlock_writing(); }
  WritingLock(const WritingLock&) = delete;
  WritingLock& operator=(const WritingLock&) = delete;

  bool held() const { return held_; }

 private:
  static bool try_lock(Directory& directory) {
    try {
      return directory.lock_for_writing();
    } catch (const std::system_error&) {
      return false;
    }
  }

  Directory& directory_;
  const bool held_;
};

}  // namespace

Upkeep::Upkeep(std::string directory, Beside beside, Retention retention,
               std::function<Duration()> wall, RecordingStats& stats, RecorderNotices& notices)
    : path_(std::move(directory)),
      beside_(beside),
      retention_(retention),
      wall_(std::move(wall)),
      stats_(stats),
      notices_(notices),
      changed_(latest_change(path_, wall_())),
      clock_(changed_),
      thread_(quiet_thread("recorder-files", [this] { run(); })) {}

Upkeep::~Upkeep() { sealed_.close(); }

void Upkeep::sealed(FileNumber number) { (void)sealed_.try_push(std::move(number)); }

void Upkeep::run() {
  std::vector<FileNumber> others;
  for (bool more = true; more;) {
    const bool closed = sealed_.closed();
    const Duration wait = work() ? Duration(period) : Duration(retry_period);
    failed_before_ = std::exchange(failed_, {});
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

// False if there is nothing to keep up: no lock is made where no recordings were.
bool Upkeep::open() {
  if (!directory_) {
    auto opened = Directory::open(path_, Directory::For::reading);
    if (!opened) return false;
    directory_.emplace(std::move(*opened));
  }
  return !directory_->list().empty() || directory_->has_lock();
}

// False if another process rewrites files, or memory is short: try again soon.
bool Upkeep::work() {
  bool is_there = false;
  if (!attempt([&] { is_there = open(); }) || !is_there) {
    directory_.reset();  // it may be made, or mounted, later
    return true;
  }
  std::optional<FileDescriptor> lock;
  attempt([&] { lock = directory_->try_lock_for_maintenance(); });
  const bool is_mine = lock && *lock;
  report_wait(lock && !is_mine);
  if (is_mine) attempt([&] { directory_->remove_temporaries(); });
  attempt([&] {
    for (const std::string& line : directory_->remove_catalog()) fail(line);
  });
  const bool rewrote = is_mine && attempt([&] { rewrite(); });
  return attempt([&] { delete_old(); }) && (rewrote || !lock);
}

// Once a minute while another process has the lock.
void Upkeep::report_wait(bool waits) {
  const Time now = Clock::now();
  if (!waits) return waits_since_.reset();
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ < period) return;
  notices_.waits_for_process();
  waits_since_ = now;
}

// False if memory is short.
template <class Step>
bool Upkeep::attempt(const Step& step) {
  try {
    step();
  } catch (const std::system_error& error) {
    fail(error.what());
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Not what the last work() has reported: it is done each minute.
void Upkeep::fail(std::string_view why) try {
  const auto [line, added] = failed_.emplace(why);
  if (added && !failed_before_.contains(*line)) notices_.failed(why);
} catch (const std::bad_alloc&) {
  notices_.failed("out of memory");
}

// A file stays due until it is rewritten: otherwise a removed stream would be on the disk for good.
// Requires: the lock for maintenance.
void Upkeep::rewrite() {
  std::set<std::uint64_t> removed = directory_->removed();
  if (removed.empty()) return due_.clear();
  // A process that removed streams may have been killed before it had rewritten the files.
  if (removed != removed_)
    for (const FileNumber file : directory_->list()) add(file);
  removed_ = std::move(removed);
  for (auto number = due_.begin(); number != due_.end();) {
    const auto rewritten = clear(*number);
    if (rewritten) {
      for (const std::string& line : rewritten->damages) fail(line);
      for (const std::string& line : rewritten->notices) fail(line);
      if (rewritten->changed) notices_.rewritten(*number, rewritten->saved_bytes);
    }
    if (rewritten || !directory_->exists(*number)) {
      number = due_.erase(number);
      continue;
    }
    stats_.errors[FileOperation::rename].add();
    fail(rewritten.error());
    ++number;
  }
}

// Seals a file before, if it was left unsealed. The newest file may be in use: its writer leaves
// removed streams out when it seals the file.
Result<Cleared, std::string> Upkeep::clear(FileNumber number) {
  try {
    const auto file = RecordingFile::open(*directory_, number, Reading::copied);
    if (file && !file->sealed()) {
      const std::vector<FileNumber> files = directory_->list();
      const bool is_newest = !files.empty() && files.back() == number;
      const WritingLock lock(*directory_, is_newest);
      if (is_newest && !lock.held()) return Cleared{};
      const auto recovered = recover(*directory_, number);
      if (!recovered) return recovered.error();
      stats_.files[FileEvent::recovered].add();
      notices_.recovered(*recovered);
    }
    return rewrite_without(*directory_, number, removed_);
  } catch (const std::system_error& error) {
    return Directory::file_name(number) + ": " + error.what();
  }
}

// Without the lock for maintenance: a process that has it may have been stopped
// (Directory::remove).
void Upkeep::delete_old() {
  Retention retention = retention_now();
  const Deleted deleted = [&] {
    // With this lock, no writer begins while its last file is deleted.
    const WritingLock lock(*directory_, beside_ == Beside::nothing);
    retention.newest = lock.held();
    return apply(retention, *directory_, wall_());
  }();
  stats_.files[FileEvent::deleted].add(deleted.files.size());
  stats_.errors[FileOperation::unlink].add(deleted.errors.size());
  for (const std::string& error : deleted.errors) fail(error);
  if (deleted.files.empty()) return;
  notices_.deleted(deleted);
  for (const std::string& error : directory_->remove_indexes()) fail(error);
}

// When space becomes short, at most `spare` bytes of files are deleted. Then the files may not grow
// until enough is free. Otherwise a program that fills the disk at once, or snapshots that keep
// deleted files, would cost all files. A program that fills the disk slowly does cost the oldest
// ones, one after another.
std::uint64_t Upkeep::keep_now() {
  const std::uint64_t room = retention_.min_free + retention_.spare;
  std::uint64_t free = room;  // if it cannot be read, `keep` and `keep_for` apply nevertheless
  attempt([&] { free = directory_->free_bytes(); });
  if (free >= room) {
    most_while_short_.reset();
    return retention_.keep;
  }
  if (!most_while_short_) {
    const std::uint64_t held = stored_bytes(*directory_);
    most_while_short_ = held - std::min({held, room - free, retention_.spare});
  }
  return std::min(retention_.keep, *most_while_short_);
}

// Without `keep_for` while the wall clock may be wrong.
Retention Upkeep::retention_now() {
  Retention retention = retention_;
  retention.keep = keep_now();
  const bool believes = clock_.believes(wall_(), Clock::now());
  if (!believes) retention.keep_for = Duration::max();
  if (!believes && !waits_for_clock_ && changed_) notices_.waits_for_clock();
  waits_for_clock_ = !believes;
  return retention;
}

}  // namespace millrace::recording
