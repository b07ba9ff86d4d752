// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/file_series.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <random>
#include <ranges>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "recording/files/recording_file.h"
#include "recording/files/rewrite.h"

namespace millrace::recording {
namespace {

std::string random_id() {
  constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 32; ++i) id += digits[random() % 16];
  return id;
}

constexpr const char* key = "recording.directory: ";

// A lock of a file cannot be waited for with a limit, so it is tried often.
template <class Lock>
bool lock_within(Duration wait, const Lock& lock) {
  constexpr int retry_ms = 20;
  const Time limit = Clock::now() + wait;
  while (!lock()) {
    if (Clock::now() >= limit) return false;
    ::poll(nullptr, 0, retry_ms);
  }
  return true;
}

Directory open_directory(const std::string& path, Duration lock_wait) {
  auto directory = Directory::open(path, Directory::For::writing);
  if (!directory) throw std::runtime_error(key + directory.error());
  if (lock_within(lock_wait, [&] { return directory->lock_for_writing(); }))
    return std::move(*directory);
  // A command that seals a large file has both locks.
  if (directory->has_maintainer())
    throw std::system_error(std::make_error_code(std::errc::device_or_resource_busy), path);
  throw std::runtime_error(key + path + ": another process records into this directory");
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

// A file that cannot be read is an error, whatever the reason.
Result<RecordingFile, std::string> open_file(const Directory& directory, FileNumber number) {
  try {
    return RecordingFile::open(directory, number, Reading::copied);
  } catch (const std::system_error& error) {
    return std::string(error.what());
  }
}

}  // namespace

bool is_disk_full(std::error_code why) {
  return why == std::errc::no_space_on_device || why.value() == EDQUOT;
}

FileSeries::FileSeries(std::string directory, Duration lock_wait, WallClock wall,
                       RecordingStats& stats, RecorderNotices& notices)
    : wall_(std::move(wall)),
      stats_(stats),
      notices_(notices),
      path_(std::move(directory)),
      lock_wait_(lock_wait),
      run_(random_id()) {
  try {
    open_to_write(lock_wait);
    return;
  } catch (const std::system_error& error) {
    if (!is_disk_fault(error.code())) throw std::runtime_error(key + std::string(error.what()));
  }
  // Streams have numbers also while nothing can be written.
  try {
    if (const auto reading = Directory::open(path_, Directory::For::reading))
      find_numbers(*reading);
  } catch (const std::system_error&) {
  }
}

void FileSeries::open_to_write(Duration lock_wait) {
  Directory directory = open_directory(path_, lock_wait);
  find_numbers(directory);
  if (const unsigned mode = directory.mode(); (mode & 077) != 0) notices_.shared(mode);
  directory_.emplace(std::move(directory));
}

Result<void, std::error_code> FileSeries::open() {
  if (directory_) return {};
  return or_no_memory([&]() -> Result<void, std::error_code> {
    try {
      open_to_write(Duration());
      return {};
    } catch (const std::system_error& error) {
      return failed(FileOperation::open, error.code());
    } catch (const std::runtime_error&) {  // the configuration was right before
      return failed(FileOperation::open, std::make_error_code(std::errc::permission_denied));
    }
  });
}

// The numbers that are in use, whichever of the files are left.
void FileSeries::find_numbers(const Directory& directory) {
  found_ = directory.list();
  const std::uint64_t last = find_last(directory);
  // Without the file `next`, another stream could get a number that is in use. If only its content
  // is damaged, the newest recording file has the number.
  std::uint64_t kept = 1;
  try {
    kept = directory.next_stream();
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::bad_message || last == 0) throw;
    notices_.skipped("next", error.code().message());
  }
  std::uint64_t removed = 1;
  try {
    for (const std::uint64_t stream : directory.removed()) removed = stream + 1;
  } catch (const std::system_error& error) {
    if (kept == 1 && last == 0) throw;
    notices_.skipped("removed", error.code().message());
  }
  const bool was_known = next_stream_ > 0;
  use(std::max({last, kept, removed}) - 1);
  if (!was_known) notices_.opened(next_stream_);
}

// The number of the next stream by the newest file that can be read; 0 without such a file. Older
// files that are not sealed stay as they are: to read them could take long.
std::uint64_t FileSeries::find_last(const Directory& directory) {
  if (found_.empty()) return 0;
  number_ = std::max(number_, found_.back());
  for (const FileNumber number : found_ | std::views::reverse) {
    const auto file = open_file(directory, number);
    if (!file) {
      notices_.skipped(Directory::file_name(number), file.error());
      continue;
    }
    if (number == found_.back() && !file->sealed()) {
      full_ = number;
      found_.pop_back();
    }
    return millrace::recording::next_stream(*file);
  }
  return 0;
}

void FileSeries::count(const Recovered& recovered) {
  stats_.files[FileEvent::recovered].add();
  if (recovered.cut_bytes > 0) stats_.files[FileEvent::truncated].add();
  stats_.truncated_bytes.add(recovered.cut_bytes);
  notices_.recovered(recovered);
}

Result<void, std::error_code> FileSeries::begin() {
  if (const auto opened = open(); !opened) return opened;
  const auto error = full_ ? recover_full() : std::nullopt;
  auto created = create_next();
  if (!created && created.error() == std::errc::file_exists) {
    if (const auto skipped = skip_taken(); !skipped) return skipped;
    created = create_next();
  }
  for (const FileNumber file : std::exchange(found_, {})) notices_.found(file);
  // If neither succeeds, there is still no space: the next attempt begins with the recovery.
  if (error && created) notices_.left_unsealed(*std::exchange(full_, std::nullopt), *error);
  return created;
}

std::optional<std::string> FileSeries::recover_full() {
  try {
    // Upkeep removes temporary files, and the recovery may make one.
    FileDescriptor lock;
    const bool locked = lock_within(std::exchange(lock_wait_, Duration()), [&] {
      lock = directory_->try_lock_for_maintenance();
      return static_cast<bool>(lock);
    });
    if (!locked) return std::nullopt;  // it is recovered before the file after the next one
    const auto recovered = recover(*directory_, *full_);
    if (!recovered) return recovered.error();
    count(*recovered);
    notices_.sealed(*full_);
    full_.reset();
    return std::nullopt;
  } catch (const std::system_error& error) {
    return error.what();
  }
}

// The number is kept before a file has it.
Result<void, std::error_code> FileSeries::keep_numbers() {
  if (kept_stream_ == next_stream_) return {};
  const auto kept = directory_->keep_next_stream(next_stream_);
  if (kept) kept_stream_ = next_stream_;
  return kept;
}

Result<void, std::error_code> FileSeries::skip_taken() {
  return or_no_memory([&]() -> Result<void, std::error_code> {
    try {
      const std::vector<FileNumber> files = directory_->list();
      if (!files.empty()) number_ = std::max(number_, files.back());
      return {};
    } catch (const std::system_error& error) {
      return failed(FileOperation::open, error.code());
    }
  });
}

Result<void, std::error_code> FileSeries::create_next() {
  const FileNumber number = number_ + 1;
  if (const auto kept = keep_numbers(); !kept) return failed(FileOperation::write, kept.error());
  auto file = directory_->create(number);
  if (!file) return failed(FileOperation::open, file.error());
  auto writer = FileWriter::begin(std::move(*file), {.file = number,
                                                     .run = run_,
                                                     .id = random_id(),
                                                     .first_stream = next_stream_,
                                                     .created = wall_().count()});
  const auto synced = writer ? directory_->sync() : Result<void, std::error_code>();
  if (!writer || !synced) {
    const auto why = failed(writer ? FileOperation::fsync : FileOperation::write,
                            writer ? synced.error() : writer.error());
    if (const auto removed = directory_->remove(number); !removed)
      (void)failed(FileOperation::unlink, removed.error());
    return why;
  }
  writer_.emplace(std::move(*writer));
  number_ = number;
  stats_.files[FileEvent::created].add();
  return {};
}

Result<void, std::error_code> FileSeries::commit() {
  const std::size_t bytes = writer_->uncommitted();
  if (bytes == 0) return {};
  Result<void, std::error_code> done;
  stats_.unsynced_bytes.set(static_cast<std::int64_t>(bytes));
  stats_.write_time.observe(timed([&] {
    done = keep_numbers();
    if (done) done = or_no_memory([&] { return writer_->write(); });
  }));
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

Result<void, std::error_code> FileSeries::seal() {
  const auto sealed = or_no_memory([&] { return writer_->seal(); });
  if (!sealed) {
    fail(FileOperation::write, sealed.error());
    return sealed;
  }
  writer_.reset();
  stats_.files[FileEvent::sealed].add();
  notices_.sealed(number_);
  return {};
}

std::uint64_t FileSeries::free_bytes() const {
  try {
    return directory_ ? directory_->free_bytes() : 0;
  } catch (const std::system_error&) {
    return 0;
  }
}

bool FileSeries::is_removed() const {
  const auto file = directory_->open_to_read(number_);
  return !file && file.error() == std::errc::no_such_file_or_directory;
}

void FileSeries::abandon(std::string_view why) {
  writer_.reset();
  stats_.files[FileEvent::quarantined].add();
  notices_.left_unsealed(number_, why);
}

// A file that has no space is recovered when there is space again: its content is not in doubt.
void FileSeries::fail(FileOperation operation, std::error_code why) {
  (void)failed(operation, why);
  stats_.unsynced_bytes.set(0);
  if (is_disk_full(why) && operation == FileOperation::write) {
    writer_.reset();
    if (full_) notices_.left_unsealed(*full_, "a file after it is to be sealed first");
    full_ = number_;
    return;
  }
  abandon(why.message());
}

std::error_code FileSeries::failed(FileOperation operation, std::error_code why) {
  stats_.errors[operation].add();
  return why;
}

}  // namespace millrace::recording
