// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/segment_series.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "recording/files/rewrite.h"
#include "recording/files/segment_file.h"

namespace millrace::recording {
namespace {

std::string random_id() {
  constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 32; ++i) id += digits[random() % 16];
  return id;
}

// A lock of a file cannot be waited for with a limit, so it is tried often.
bool lock_within(Directory& directory, Duration wait) {
  constexpr int retry_ms = 20;
  const Time limit = Clock::now() + wait;
  while (!directory.lock_for_writing()) {
    if (Clock::now() >= limit) return false;
    ::poll(nullptr, 0, retry_ms);
  }
  return true;
}

Directory open_directory(const std::string& path, Duration lock_wait) {
  auto directory = Directory::open(path, Directory::For::writing);
  if (!directory) throw std::runtime_error("recording.directory: " + directory.error());
  if (!lock_within(*directory, lock_wait))
    throw std::runtime_error("recording.directory: " + path +
                             ": another process records into this directory");
  return std::move(*directory);
}

// If an allocation fails, the file is in an unknown state, as after a failed write.
template <class Call>
Result<void, std::error_code> or_no_memory(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

// Calls `work` and returns the time that it took.
template <class Work>
Duration timed(const Work& work) {
  const Time begun = Clock::now();
  work();
  return Clock::now() - begun;
}

}  // namespace

bool is_disk_full(std::error_code why) {
  return why == std::errc::no_space_on_device || why.value() == EDQUOT;
}

SegmentSeries::SegmentSeries(const std::string& directory, Duration lock_wait, WallClock wall,
                             RecordingStats& stats, RecorderNotices& notices)
    : wall_(std::move(wall)),
      stats_(stats),
      notices_(notices),
      directory_(open_directory(directory, lock_wait)),
      run_(random_id()) {
  recover_last();
  if (const auto begun = begin(); !begun)
    throw std::runtime_error("recording.directory: " + directory + "/" +
                             Directory::file_name(number_ + 1) + ": " + begun.error().message());
}

// Older files that are not sealed stay as they are: to read them could take long.
void SegmentSeries::recover_last() {
  const std::vector<FileNumber> files = directory_.list();
  if (files.empty()) return;
  number_ = files.back();
  auto last = SegmentFile::open(directory_, number_);
  if (last && !last->sealed()) {
    const auto recovered = recover(directory_, number_);
    if (!recovered) throw std::runtime_error("recording.directory: " + recovered.error());
    count(*recovered);
    last = SegmentFile::open(directory_, number_);
  }
  if (!last) throw std::runtime_error("recording.directory: " + last.error());
  use(millrace::recording::next_stream(*last) - 1);
}

void SegmentSeries::count(const Recovered& recovered) {
  stats_.segments[SegmentEvent::recovered].add();
  if (recovered.cut_bytes > 0) stats_.segments[SegmentEvent::truncated].add();
  stats_.truncated_bytes.add(recovered.cut_bytes);
  notices_.recovered(recovered);
}

Result<void, std::error_code> SegmentSeries::begin() {
  const auto error = full_ ? recover_full() : std::nullopt;
  auto created = create_next();
  if (!created && created.error() == std::errc::file_exists) {
    if (const auto skipped = skip_taken(); !skipped) return skipped;
    created = create_next();
  }
  // If neither succeeds, there is still no space: the next attempt begins with the recovery.
  if (error && created) notices_.left_unsealed(*std::exchange(full_, std::nullopt), *error);
  return created;
}

std::optional<std::string> SegmentSeries::recover_full() {
  const auto recovered = recover(directory_, *full_);
  if (!recovered) return recovered.error();
  count(*recovered);
  notices_.sealed(*full_);
  full_.reset();
  return std::nullopt;
}

Result<void, std::error_code> SegmentSeries::skip_taken() {
  return or_no_memory([&]() -> Result<void, std::error_code> {
    try {
      const std::vector<FileNumber> files = directory_.list();
      if (!files.empty()) number_ = std::max(number_, files.back());
      return {};
    } catch (const std::system_error& error) {
      return failed(FileOperation::open, error.code());
    }
  });
}

Result<void, std::error_code> SegmentSeries::create_next() {
  const FileNumber number = number_ + 1;
  auto file = directory_.create(number);
  if (!file) return failed(FileOperation::open, file.error());
  auto writer = SegmentWriter::begin(std::move(*file), {.file = number,
                                                        .run = run_,
                                                        .id = random_id(),
                                                        .first_stream = next_stream_,
                                                        .created = wall_().count()});
  const auto synced = writer ? directory_.sync() : Result<void, std::error_code>();
  if (!writer || !synced) {
    const auto why = failed(writer ? FileOperation::fsync : FileOperation::write,
                            writer ? synced.error() : writer.error());
    if (const auto removed = directory_.remove(number); !removed)
      (void)failed(FileOperation::unlink, removed.error());
    return why;
  }
  writer_.emplace(std::move(*writer));
  number_ = number;
  stats_.segments[SegmentEvent::created].add();
  return {};
}

Result<void, std::error_code> SegmentSeries::commit() {
  const std::size_t bytes = writer_->uncommitted();
  if (bytes == 0) return {};
  Result<void, std::error_code> done;
  stats_.unsynced_bytes.set(static_cast<std::int64_t>(bytes));
  stats_.write_time.observe(timed([&] { done = or_no_memory([&] { return writer_->write(); }); }));
  if (!done) {
    fail(FileOperation::write, done.error());
    return done;
  }
  stats_.sync_time.observe(timed([&] { done = writer_->sync(); }));
  if (!done) {
    fail(FileOperation::fsync, done.error());
    return done;
  }
  stats_.unsynced_bytes.set(0);
  stats_.written_bytes.add(bytes);
  stats_.last_sync.set(std::chrono::duration_cast<std::chrono::seconds>(wall_()).count());
  return done;
}

Result<void, std::error_code> SegmentSeries::seal() {
  const auto sealed = or_no_memory([&] { return writer_->seal(); });
  if (!sealed) {
    fail(FileOperation::write, sealed.error());
    return sealed;
  }
  writer_.reset();
  stats_.segments[SegmentEvent::sealed].add();
  notices_.sealed(number_);
  return {};
}

std::uint64_t SegmentSeries::free_bytes() const {
  try {
    return directory_.free_bytes();
  } catch (const std::system_error&) {
    return 0;
  }
}

bool SegmentSeries::is_removed() const {
  const auto file = directory_.open_to_read(number_);
  return !file && file.error() == std::errc::no_such_file_or_directory;
}

void SegmentSeries::abandon(std::string_view why) {
  writer_.reset();
  stats_.segments[SegmentEvent::quarantined].add();
  notices_.left_unsealed(number_, why);
}

// A file that has no space is recovered when there is space again: its content is not in doubt.
void SegmentSeries::fail(FileOperation operation, std::error_code why) {
  (void)failed(operation, why);
  stats_.unsynced_bytes.set(0);
  if (is_disk_full(why) && operation == FileOperation::write) {
    writer_.reset();
    full_ = number_;
    return;
  }
  abandon(why.message());
}

std::error_code SegmentSeries::failed(FileOperation operation, std::error_code why) {
  stats_.errors[operation].add();
  return why;
}

}  // namespace millrace::recording
