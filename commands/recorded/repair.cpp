// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/repair.h"

#include <ostream>
#include <utility>

#include "commands/recorded/remove_streams.h"
#include "recording/files/recording_file.h"

namespace millrace::recordings {

using recording::Directory;
using recording::FileNumber;
using recording::RecordingFile;
using recording::Recovered;

Result<Directory, std::string> open_to_change(const std::string& path) {
  return Directory::open(path, Directory::For::changing);
}

namespace {

// Seals a file that is not sealed. Requires: no process writes it.
void seal(const Directory& directory, FileNumber number, Sealed& sealed) {
  const auto lock = directory.lock_for_maintenance();
  const auto file = RecordingFile::open(directory, number, recording::Reading::copied);
  if (file && file->sealed()) return;
  auto recovered = file ? recording::recover(directory, number) : file.error();
  if (recovered)
    sealed.files.push_back(std::move(*recovered));
  else if (directory.exists(number))  // retention may have deleted it
    sealed.errors.push_back(recovered.error());
}

}  // namespace

Result<Sealed, std::string> seal_abandoned(const std::string& path, Progress& progress) {
  auto directory = open_to_change(path);
  if (!directory) return directory.error();
  Sealed sealed{.errors = directory->remove_catalog()};
  const auto files = directory->list();
  for (const FileNumber number : files) {
    // A service that starts would recover the newest file at the same time. It waits a few seconds
    // for this lock, so it is taken last.
    if (number == files.back() && !directory->lock_for_writing()) break;
    progress.show("reading " + Directory::file_name(number), Clock::now());
    seal(*directory, number, sealed);
  }
  return sealed;
}

namespace {

// The bytes that were cut from a file, and the streams that may have had more: a line each.
std::vector<std::string> lines_about(const Recovered& file) {
  const std::string name = Directory::file_name(file.file);
  std::vector<std::string> lines{name + ": sealed; " + counted(file.cut_bytes, "byte") +
                                 " cut after the last whole chunk"};
  if (file.lost_bytes > 0)
    lines.back() += ", " + counted(file.lost_bytes, "byte") + " lost in damaged chunks";
  for (const std::string& stream : file.streams)
    lines.push_back(name + ": may be incomplete: stream " + stream);
  return lines;
}

}  // namespace

bool print(const Sealed& sealed, std::ostream& out, Progress& progress) {
  progress.clear();
  bool good = sealed.errors.empty();
  for (const Recovered& file : sealed.files) {
    for (const std::string& line : lines_about(file)) {
      if (file.lost_bytes > 0)
        progress.note(line);
      else
        out << line << '\n';
    }
    for (const std::string& line : file.notices) progress.note(line);
    good = good && file.lost_bytes == 0;
  }
  for (const std::string& error : sealed.errors) progress.note(error);
  return good;
}

Result<bool, std::string> repair(const std::string& path, std::ostream& out, Progress& progress) {
  const auto sealed = seal_abandoned(path, progress);
  if (!sealed) return sealed.error();
  const bool good = print(*sealed, out, progress);
  const auto removed = complete_removals(path, progress);
  if (!removed) return removed.error();
  print(*removed, progress);
  out << counted(sealed->files.size(), "file") << " sealed\n";
  if (removed->files > 0)
    out << "removals completed: " << counted(removed->files, "file") << " rewritten, "
        << decimal_bytes(removed->bytes) << " freed\n";
  return good && removed->good();
}

}  // namespace millrace::recordings
