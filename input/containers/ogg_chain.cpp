// SPDX-License-Identifier: Apache-2.0
#include "input/containers/ogg_chain.h"

#include <fcntl.h>

#include <numeric>

#include "base/file_descriptor.h"
#include "input/containers/file_bytes.h"

namespace millrace {

// A page begins with "OggS", a version and flags; 27 bytes in all, of which the last is the number
// of segments, whose lengths follow.
bool is_ogg_chain(const std::string& path) {
  constexpr std::size_t flags = 5, head = 27;
  constexpr char begins_stream = 2;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  FileBytes bytes(file.get());
  bool has_content = false;  // streams in parallel begin with a page each, before all other pages
  for (std::uint64_t at = 0;;) {
    const std::string_view page = bytes.read(at, head + 255);
    if (page.size() < head || !page.starts_with("OggS")) return false;
    const bool begins = (page[flags] & begins_stream) != 0;
    if (begins && has_content) return true;
    has_content |= !begins;
    const std::string_view lengths = page.substr(head, static_cast<std::uint8_t>(page[head - 1]));
    at += head + static_cast<std::uint8_t>(page[head - 1]) +
          std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0},
                          [](std::uint64_t sum, char length) {
                            return sum + static_cast<std::uint8_t>(length);
                          });
  }
}

}  // namespace millrace
