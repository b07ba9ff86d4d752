// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/recording_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace millrace::recording {
namespace {

// Files that stay open although no reader needs them now.
constexpr std::size_t most_recent = 4;

std::uint64_t inode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), path);
  return status.st_ino;
}

struct stat status_of(const FileDescriptor& file, FileNumber number) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), Directory::file_name(number));
  return status;
}

// A link, or something else that is not a file: it stays unreadable.
bool is_no_file(std::error_code error) {
  return error == std::errc::too_many_symbolic_link_levels || error == std::errc::invalid_argument;
}

// Names the file in the errors of reading it.
Result<RecordingFile, std::string> read_file(FileDescriptor descriptor, FileNumber number) {
  try {
    return RecordingFile::open(std::move(descriptor), number);
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), Directory::file_name(number));
  }
}

bool same(const CatalogFile& a, const CatalogFile& b) {
  return a.inode == b.inode && a.bytes == b.bytes && a.changed == b.changed;
}

}  // namespace

RecordingFiles::RecordingFiles(Directory directory)
    : directory_(std::move(directory)),
      inode_(inode_of(directory_.path())),
      // A directory without recording files may be another one, whose name was mistyped.
      catalog_(directory_.list().empty() ? Catalog::in_memory()
                                         : Catalog::open(directory_.path(), inode_)) {}

bool RecordingFiles::refresh() {
  catalog_current_ = false;
  // In this order: if a service writes no longer, all that it wrote is read.
  const bool written = directory_.has_writer();
  std::set<std::uint64_t> removed = directory_.removed();
  changed_ |= removed_ != removed;
  removed_ = std::move(removed);
  unreadable_.clear();
  present_ = identities();
  leave_replaced();
  with_catalog([](Catalog&) {});

  std::vector<FileNumber> numbers;
  std::string live;
  for (const auto& [number, identity] : present_) {
    if (!sealed_.contains(number) && !unsealed_.contains(number)) continue;
    numbers.push_back(number);
    if (std::string run = run_of(number); written && !run.empty()) live = std::move(run);
  }
  changed_ |= numbers_ != numbers || live_run_ != live;
  numbers_ = std::move(numbers);
  live_run_ = std::move(live);
  // Changes that a call found before it failed count too.
  return std::exchange(changed_, false);
}

// nullopt: it was deleted. Any other error may pass, as if the process has no free descriptor: a
// reader that went on would have less than the directory has.
std::optional<FileDescriptor> RecordingFiles::open_file(FileNumber number) const {
  auto file = directory_.open_to_read(number);
  if (file) return std::move(*file);
  if (file.error() == std::errc::no_such_file_or_directory) return std::nullopt;
  throw std::system_error(file.error(), Directory::file_name(number));
}

RecordingFiles::Identities RecordingFiles::identities() {
  Identities found;
  for (const FileNumber number : directory_.list()) {
    std::optional<FileDescriptor> file;
    try {
      file = open_file(number);
    } catch (const std::system_error& error) {
      if (!is_no_file(error.code())) throw;
      unreadable_[number] = error.what();
    }
    if (!file) continue;
    const struct stat status = status_of(*file, number);
    const std::int64_t changed =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    found[number] = {.number = number,
                     .inode = status.st_ino,
                     .bytes = static_cast<std::uint64_t>(status.st_size),
                     .changed = changed,
                     .run = {}};
  }
  return found;
}

// Reads on in the files that were not sealed. Files that were replaced or deleted stay with the
// readers that have them.
void RecordingFiles::leave_replaced() {
  const auto replaced = [&](FileNumber number, const IndexedFile& file) {
    const auto here = present_.find(number);
    return here == present_.end() || here->second.inode != file.inode;
  };
  for (auto at = unsealed_.begin(); at != unsealed_.end();) {
    const bool left = replaced(at->first, *at->second);
    changed_ |= at->second->file.refresh() || left;
    at = left ? unsealed_.erase(at) : std::next(at);
  }
  for (auto at = opened_.begin(); at != opened_.end();) {
    const auto file = at->second.lock();
    const bool left = !file || replaced(at->first, *file);
    if (left) std::erase(recent_, file);
    at = left ? opened_.erase(at) : std::next(at);
  }
}

void RecordingFiles::replace_catalog(bool in_memory) {
  catalog_current_ = false;
  catalog_ = Catalog::in_memory();
  if (in_memory) return;
  Catalog::remove(directory_.path());
  catalog_ = Catalog::open(directory_.path(), inode_);
}

void RecordingFiles::update_catalog() {
  Identities known;
  bool begun = false;
  const auto read_known = [&] {
    known.clear();
    for (CatalogFile& file : catalog_.files()) known[file.number] = std::move(file);
  };
  const auto begin = [&] {
    if (std::exchange(begun, true)) return;
    catalog_.begin();
    // Another process may have changed the catalog meanwhile.
    read_known();
  };
  const auto is_known = [&](const CatalogFile& identity) {
    const auto file = known.find(identity.number);
    return file != known.end() && same(file->second, identity);
  };

  // If a file cannot be read now, the others stay readable.
  const auto gone = [&](const auto& file) { return !present_.contains(file.first); };
  read_known();
  std::erase_if(sealed_, gone);
  for (const auto& [number, identity] : present_) {
    if (!is_known(identity)) {
      const auto file = newly_sealed(identity);
      if (!file) {
        sealed_.erase(number);
        continue;
      }
      sealed_[number] = identity;
      begin();
      if (!is_known(identity)) put(identity, file->file);
      known[number] = identity;
      known[number].run = file->file.head().run;
      changed_ = true;
    } else if (const auto found = unsealed_.find(number); found != unsealed_.end()) {
      // Another process has put the file into the catalog since it was sealed.
      keep_open(number, found->second);
      unsealed_.erase(found);
      changed_ = true;
    }
    sealed_[number] = known[number];
  }
  if (std::ranges::any_of(known, gone)) begin();
  for (const auto& file : known)
    if (gone(file)) catalog_.forget(file.first);
  if (begun) catalog_.commit();
}

// A file that the catalog does not have. Null: it is not sealed, is no recording file, or was
// deleted.
std::shared_ptr<IndexedFile> RecordingFiles::newly_sealed(const CatalogFile& identity) {
  const FileNumber number = identity.number;
  if (const auto found = unsealed_.find(number); found != unsealed_.end()) {
    const auto file = found->second;
    if (!file->file.sealed()) return nullptr;
    unsealed_.erase(found);
    keep_open(number, file);
    return file;
  }
  auto descriptor = open_file(number);
  if (!descriptor) return nullptr;
  auto opened = read_file(std::move(*descriptor), number);
  if (!opened) {
    unreadable_[number] = opened.error();
    return nullptr;
  }
  const auto file = std::make_shared<IndexedFile>(std::move(*opened), identity.inode);
  if (file->file.sealed()) return file;
  unsealed_[number] = file;
  changed_ = true;
  return nullptr;
}

void RecordingFiles::put(CatalogFile identity, RecordingFile& file) {
  catalog_.forget(identity.number);
  identity.run = file.head().run;
  catalog_.put(identity, file.channels(), file.parts());
}

std::string RecordingFiles::run_of(FileNumber number) const {
  if (const auto found = unsealed_.find(number); found != unsealed_.end())
    return found->second->file.head().run;
  const auto found = sealed_.find(number);
  return found == sealed_.end() ? std::string() : found->second.run;
}

std::vector<std::string> RecordingFiles::problems() const {
  std::vector<std::string> lines;
  for (const auto& [number, line] : unreadable_) lines.push_back(line);
  return lines;
}

Result<std::shared_ptr<IndexedFile>, std::string> RecordingFiles::indexed(FileNumber number) {
  if (const auto found = unsealed_.find(number); found != unsealed_.end()) return found->second;
  const auto known = sealed_.find(number);
  const std::string damaged = "damaged: file " + std::to_string(number);
  if (known == sealed_.end()) return unreadable_.contains(number) ? damaged : "deleted";
  const auto found = opened_.find(number);
  auto file = found == opened_.end() ? nullptr : found->second.lock();
  if (!file) {
    auto descriptor = open_file(number);
    if (!descriptor) return std::string("deleted");
    auto opened = read_file(std::move(*descriptor), number);
    if (!opened) return damaged;
    file = std::make_shared<IndexedFile>(std::move(*opened), known->second.inode);
  }
  file->file.close_if_sealed();
  keep_open(number, file);
  return file;
}

void RecordingFiles::keep_open(FileNumber number, const std::shared_ptr<IndexedFile>& file) {
  opened_[number] = file;
  std::erase(recent_, file);
  if (recent_.size() >= most_recent) recent_.pop_back();
  recent_.insert(recent_.begin(), file);
}

}  // namespace millrace::recording
