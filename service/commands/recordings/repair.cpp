// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/repair.h"

#include <ostream>
#include <utility>

#include "recording/files/segment_file.h"

namespace millrace::recordings {

using recording::Directory;
using recording::FileNumber;
using recording::Recovered;
using recording::SegmentFile;

namespace {

void print(const Recovered& file, std::ostream& out) {
  out << Directory::file_name(file.file) << ": sealed; " << counted(file.cut_bytes, "byte")
      << " cut after the last whole chunk";
  if (file.lost_bytes > 0)
    out << ", " << counted(file.lost_bytes, "byte") << " lost in damaged chunks";
  out << '\n';
  for (const std::string& stream : file.streams)
    out << Directory::file_name(file.file) << ": may be incomplete: stream " << stream << '\n';
}

}  // namespace

Result<Directory, std::string> open_to_change(const std::string& path) {
  return Directory::open(path, Directory::For::changing);
}

namespace {

// Seals a file that is not sealed. Requires: no process writes it.
void seal(const Directory& directory, FileNumber number, Sealed& sealed) {
  const auto lock = directory.lock_for_maintenance();
  const auto file = SegmentFile::open(directory, number);
  if (!file) {
    sealed.errors.push_back(file.error());
    return;
  }
  if (file->sealed()) return;
  auto recovered = recording::recover(directory, number);
  if (recovered)
    sealed.files.push_back(std::move(*recovered));
  else
    sealed.errors.push_back(recovered.error());
}

}  // namespace

Result<Sealed, std::string> seal_abandoned(const std::string& path, Progress& progress) {
  auto directory = open_to_change(path);
  if (!directory) return directory.error();
  const auto files = directory->list();
  Sealed sealed;
  for (const FileNumber number : files) {
    // A service that starts would recover the newest file at the same time. It waits a few seconds
    // for this lock, so it is taken last.
    if (number == files.back() && !directory->lock_for_writing()) break;
    progress.show("reading " + Directory::file_name(number), Clock::now());
    seal(*directory, number, sealed);
  }
  return sealed;
}

Result<bool, std::string> repair(const std::string& path, std::ostream& out, Progress& progress) {
  auto sealed = seal_abandoned(path, progress);
  if (!sealed) return sealed.error();
  // Removed streams could not be taken out of an unsealed file.
  const auto directory = open_to_change(path);
  if (!directory) return directory.error();
  for (const Recovered& file : sealed->files) {
    const auto lock = directory->lock_for_maintenance();
    const auto rewritten = recording::rewrite_without(*directory, file.file, directory->removed());
    if (!rewritten) sealed->errors.push_back(rewritten.error());
  }
  progress.clear();
  for (const Recovered& file : sealed->files) print(file, out);
  for (const std::string& error : sealed->errors) progress.note(error);
  out << counted(sealed->files.size(), "file") << " sealed\n";
  return sealed->errors.empty();
}

}  // namespace millrace::recordings
