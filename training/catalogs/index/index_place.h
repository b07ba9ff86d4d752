// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// Where the index of a catalog is: in the folder `.millrace` beside the data, or in the user's
// cache ($XDG_CACHE_HOME/millrace, or ~/.cache/millrace). The folder is made before the data are
// listed, so that writing the index does not change the time of the folder of the data. Confined
// to one thread.
class IndexPlace {
 public:
  // `folder`: the folder of the data. `name`: the name of the index in it. Makes no folder.
  IndexPlace(const std::string& folder, const std::string& name);
  // No place: there is no index, and none can be written.
  IndexPlace() = default;

  // The valid index files that exist, the one beside the data first.
  std::vector<Index> read() const;

  // Begins to make an index, before the data are listed: a temporary file in the first folder that
  // can be written. False: no folder can be written.
  bool begin();
  // The present time of the file system, as FileState::changed. Requires: begin() was true.
  std::int64_t now() const;
  // Writes, syncs and renames the temporary file. The path of the index; empty if it could not be
  // written.
  std::string commit(Bytes index);

  ~IndexPlace();
  IndexPlace(const IndexPlace&) = delete;
  IndexPlace& operator=(const IndexPlace&) = delete;

 private:
  bool begin_in(const std::string& path);
  void begin_tick();
  void remove_abandoned() const;

  std::vector<std::string> paths_;
  std::string path_, temporary_;  // while an index is made
  FileDescriptor file_;
};

}  // namespace millrace::training
