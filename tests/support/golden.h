// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// The bytes of tests/golden/<name>, written by another program or version. A change of such a file
// is a change of the format. If MILLRACE_WRITE_GOLDEN is set, `written` replaces the file first.
inline std::vector<std::byte> golden(const std::string& name, Bytes written) {
  const std::string path = std::string(MILLRACE_GOLDEN) + "/" + name;
  if (std::getenv("MILLRACE_WRITE_GOLDEN"))
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(written.data()),
               static_cast<std::streamsize>(written.size()));
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at)
    bytes.push_back(static_cast<std::byte>(*at));
  return bytes;
}

inline std::vector<std::byte> copy_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace millrace
