// SPDX-License-Identifier: Apache-2.0
#include "monitoring/open_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

namespace millrace {

namespace {

// The size of the process's descriptor table. All open descriptors are below it.
int table_size() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == "FDSize:") {
      int size = 0;
      file >> size;
      return size;
    }
  return 0;
}

}  // namespace

std::size_t open_files() {
  struct stat folder {};
  if (::stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0)  // the count since Linux 6.2
    return static_cast<std::size_t>(folder.st_size);
  return count_open_files();
}

std::size_t count_open_files() {
  const int size = table_size();
  std::size_t open = 0;
  for (int descriptor = 0; descriptor < size; ++descriptor)
    open += ::fcntl(descriptor, F_GETFD) >= 0;
  return open;
}

}  // namespace millrace
