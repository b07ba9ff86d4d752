// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/files/file.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A file in mapped memory that others may cut, replace or delete. Keeps no descriptor. Confined to
// one thread.
class CheckedMapping {
 public:
  // Maps the whole file. The error names it.
  static Result<CheckedMapping, ReadError> open(const std::string& path);

  // The file as it was when it was opened. Call check() before each use: reading bytes that the
  // file does not have any more ends the process with SIGBUS. This remains possible if the file is
  // cut less than 20 ms before the end of the use.
  Bytes bytes() const { return mapped_.bytes(); }

  // The error if the path does not lead to the whole file any more. Looks every 10 ms: a look takes
  // longer than the copy of a row.
  Result<void, ReadError> check();

 private:
  CheckedMapping(std::string path, recording::MappedFile mapped, dev_t device, ino_t inode);
  Result<void, ReadError> look() const;

  std::string path_, absolute_path_;
  recording::MappedFile mapped_;
  dev_t device_;
  ino_t inode_;
  std::int64_t checked_;  // milliseconds of the coarse clock
};

}  // namespace millrace::training
