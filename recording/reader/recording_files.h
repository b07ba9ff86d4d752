// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/reader/catalog.h"
#include "recording/reader/indexed_file.h"

namespace millrace::recording {

// The recording files of a directory that can be read, and its catalog, which refresh() brings up
// to date. Confined to one thread. Functions throw std::system_error if the disk fails.
class RecordingFiles {
 public:
  explicit RecordingFiles(Directory directory);

  // Compares the directory with what was read of it, and reads the difference. True if there is
  // any. If a service is recording, all that it wrote before this call is read.
  bool refresh();

  const Directory& directory() const { return directory_; }
  // Those that can be read, by number.
  const std::vector<FileNumber>& numbers() const { return numbers_; }
  // Those that cannot be read at all, each with a line why.
  std::vector<std::string> problems() const;
  // Streams that no reader returns.
  const std::set<std::uint64_t>& removed() const { return removed_; }
  // The run of the service that is recording now; empty if no service is.
  const std::string& live_run() const { return live_run_; }
  std::string run_of(FileNumber number) const;

  // The file for readers of its chunks. The error is why they are missing: "deleted", "damaged:
  // file 3".
  Result<std::shared_ptr<IndexedFile>, std::string> indexed(FileNumber number);
  // The files that are not sealed. Their parts are not in the catalog.
  using Unsealed = std::map<FileNumber, std::shared_ptr<IndexedFile>>;
  const Unsealed& unsealed() const { return unsealed_; }

  // Calls use(catalog), and returns its value. The catalog has the parts of all sealed files, and
  // perhaps of files that were sealed since refresh(): leave out a part unless is_sealed(file). If
  // the catalog cannot be used, it is made anew, at last in memory, and `use` is called again.
  template <class Use>
  auto with_catalog(Use use) {
    for (int attempt = 0;; ++attempt) {
      try {
        if (!catalog_current_) update_catalog();
        catalog_current_ = true;
        return use(catalog_);
      } catch (const std::system_error&) {
        replace_catalog(true);  // a change that was begun would lock other processes out
        throw;
      } catch (const DatabaseError& error) {
        if (attempt == 2) throw;
        replace_catalog(error.busy() || attempt == 1);
      }
    }
  }
  bool is_sealed(FileNumber number) const { return sealed_.contains(number); }

 private:
  using Identities = std::map<FileNumber, CatalogFile>;

  std::optional<FileDescriptor> open_file(FileNumber number) const;
  Identities identities();
  void leave_replaced();
  void update_catalog();
  std::shared_ptr<IndexedFile> newly_sealed(const CatalogFile& identity);
  void put(CatalogFile identity, RecordingFile& file);
  void replace_catalog(bool in_memory);
  void keep_open(FileNumber number, const std::shared_ptr<IndexedFile>& file);

  Directory directory_;
  std::uint64_t inode_;
  Catalog catalog_;
  bool catalog_current_ = false;
  Identities present_;  // all files of the directory
  Identities sealed_;   // those that the catalog has
  Unsealed unsealed_;
  std::map<FileNumber, std::weak_ptr<IndexedFile>> opened_;
  std::vector<std::shared_ptr<IndexedFile>> recent_;  // the last one used is the first
  std::vector<FileNumber> numbers_;
  std::map<FileNumber, std::string> unreadable_;
  std::set<std::uint64_t> removed_;
  std::string live_run_;
  bool changed_ = false;
};

}  // namespace millrace::recording
