// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/verify.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "commands/recorded/verify/file_check.h"
#include "commands/recorded/verify/problems.h"
#include "commands/recorded/verify/row_check.h"
#include "commands/recorded/verify/slice_order.h"
#include "recording/reader/recordings.h"
#include "schemas/text.h"

namespace millrace::recordings {
namespace {

using recording::Reading;
using recording::RecordingFile;

// The check of all files of a directory. Confined to one thread.
class DirectoryCheck {
 public:
  DirectoryCheck(const Directory& directory, Problems& problems, Progress& progress)
      : directory_(directory),
        files_(directory.list()),
        removed_(directory.removed()),
        cure_("run millrace recordings repair " + shell_quoted(directory.path())),
        problems_(problems),
        progress_(progress),
        order_(files_.empty() || files_.front() == 1, problems) {}

  void run() {
    for (const FileNumber file : files_) {
      check(file);
      problems_.print();
    }
    for (const auto& [file, torn] : unsealed_) check_unsealed(file, torn);
    for (const FileNumber file : pending_) check_pending(file);
    check_temporaries();
    problems_.print();
  }

  std::string summary() const {
    const SliceOrder::Counts counts = order_.counts();
    return counted(read_, "file") + ", " + decimal_bytes(bytes_) + ", " +
           counted(counts.streams, "stream") + ", " + std::to_string(counts.whole) + " whole, " +
           counted(counts.lost_parts, "lost part") + in_use_;
  }

 private:
  void check(FileNumber number) {
    auto file = RecordingFile::open(directory_, number, Reading::copied);
    if (!file) {
      // Retention may have deleted it.
      if (directory_.exists(number)) problems_.add(file.error());
      return;
    }
    ++read_;
    FileCheck(*file, order_, problems_).run([&](std::uint64_t at) { show(bytes_ + at); });
    bytes_ += file->size();
    if (!file->sealed()) {
      unsealed_.emplace_back(number, file->torn_bytes());
      if (has_removed(*file))
        in_use_ += "; " + Directory::file_name(number) + " has removed streams until it is sealed";
    } else if (has_removed(*file)) {
      pending_.push_back(number);
    }
  }

  bool has_removed(const RecordingFile& file) const {
    return std::ranges::any_of(file.channels(), [&](const auto& channel) {
      return removed_.contains(channel.second.number);
    });
  }

  // A removal that was interrupted. No problem if a process is completing it now, or a service
  // will: a service rewrites a file soon after it has sealed it.
  void check_pending(FileNumber number) {
    std::error_code error;
    const auto written = std::filesystem::last_write_time(
        directory_.path() + "/" + Directory::file_name(number), error);
    const auto age = std::filesystem::file_time_type::clock::now() - written;
    const bool is_new = !error && age < std::chrono::minutes(1);
    if (directory_.has_maintainer() || (is_new && directory_.has_writer())) return;
    const auto again = RecordingFile::open(directory_, number, Reading::copied);
    if (again && again->sealed() && has_removed(*again))
      problems_.add(number, "still has streams that were removed: " + cure_);
  }

  // They can have frames of removed streams. No problem while a process may be writing them.
  void check_temporaries() {
    const std::vector<std::string> found = directory_.temporaries();
    if (found.empty() || directory_.has_maintainer() || directory_.has_writer()) return;
    for (const std::string& name : directory_.temporaries())
      if (std::ranges::find(found, name) != found.end())
        problems_.add(name + ": left by a process that was killed: " + cure_);
  }

  // A file without a summary is good only if a service is writing it, or has sealed it meanwhile.
  void check_unsealed(FileNumber number, std::uint64_t torn) {
    const auto files = directory_.list();
    if (directory_.has_writer() && !files.empty() && files.back() == number) return;
    const auto again = RecordingFile::open(directory_, number, Reading::copied);
    if (again && again->sealed()) return;
    if (!directory_.exists(number)) return;
    problems_.add(number, "left unsealed, with " + counted(torn, "byte") +
                              " after the last whole chunk: " + cure_);
  }

  void show(std::uint64_t bytes) {
    const Time now = Clock::now();
    if (!progress_.due(now)) return;
    progress_.show("verify: file " + std::to_string(read_) + " of " +
                       std::to_string(files_.size()) + ", " + decimal_bytes(bytes),
                   now);
  }

  const Directory& directory_;
  const std::vector<FileNumber> files_;
  const std::set<std::uint64_t> removed_;
  const std::string cure_;
  Problems& problems_;
  Progress& progress_;
  SliceOrder order_;
  std::vector<std::pair<FileNumber, std::uint64_t>> unsealed_;  // with its torn bytes
  std::vector<FileNumber> pending_;                             // sealed files with removed streams
  std::string in_use_;                                          // about unsealed files with these
  std::uint64_t read_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<bool, std::string> verify(const std::string& path, bool rows, std::ostream& out,
                                 Progress& progress) {
  const auto directory = Directory::open(path, Directory::For::reading);
  if (!directory) return directory.error();
  Problems problems(*directory, out, progress);
  DirectoryCheck check(*directory, problems, progress);
  check.run();
  std::string summary = check.summary();
  if (rows) {
    const auto recordings = recording::Recordings::open(path);
    if (!recordings) return recordings.error();
    const std::uint64_t cut = check_rows(**recordings, problems, [&](std::uint64_t streams) {
      const Time now = Clock::now();
      if (progress.due(now)) progress.show("verify: rows of " + counted(streams, "stream"), now);
    });
    problems.print();
    summary += ", rows of " + counted(cut, "stream") + " cut again";
  }
  progress.clear();
  const bool good = problems.printed() == 0;
  out << summary << ": " << (good ? "good" : counted(problems.printed(), "problem")) << '\n';
  return good;
}

}  // namespace millrace::recordings
