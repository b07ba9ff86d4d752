// SPDX-License-Identifier: Apache-2.0
// The bytes of a ZeroMQ peer, beginning with its greeting. The first two bytes of an input
// determine the size of the pieces of the rest, and the maximum length of a message.
#include "transport/zeromq/zmtp_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using Found = ZmtpReader::Found;
using fuzz::require;

struct Element {
  Found found;
  std::string content;
  bool operator==(const Element&) const = default;
};

std::string content_of(ZmtpReader& reader, Found found, std::size_t max_message) {
  switch (found) {
    case Found::ready:
      require(reader.name().size() <= ZmtpReader::max_name, "a routing id has at most 255 bytes");
      require(!reader.name().starts_with('\0'), "a routing id does not begin as the service's own");
      return reader.name();
    case Found::message: {
      std::string text(reader.take_message().text());
      require(text.size() <= max_message, "a message is not longer than the limit");
      return text;
    }
    case Found::ping: return std::string(reader.context());
    default: return {};
  }
}

// The elements that the reader finds in the bytes, given in pieces of `size`.
std::vector<Element> read(Bytes bytes, std::size_t size, std::size_t max_message) {
  ZmtpReader reader(max_message);
  std::vector<Element> elements;
  while (!bytes.empty()) {
    Bytes piece = bytes.first(std::min(size, bytes.size()));
    bytes = bytes.subspan(piece.size());
    while (!piece.empty()) {
      const std::size_t before = piece.size();
      const Found found = reader.next(piece);
      if (found == Found::wrong || found == Found::endless) {
        elements.push_back({found, {}});
        return elements;
      }
      require(piece.size() < before, "each call takes bytes");
      if (found == Found::nothing) {
        require(piece.empty(), "more bytes are needed only when all were read");
      } else {
        elements.push_back({found, content_of(reader, found, max_message)});
      }
    }
  }
  return elements;
}

// The first elements of a connection are its greeting and its READY.
void check_order(const std::vector<Element>& elements) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Found found = elements[i].found;
    if (found == Found::wrong) continue;
    require((found == Found::greeting) == (i == 0), "a greeting comes first, and once");
    require((found == Found::ready) == (i == 1), "READY follows the greeting, and comes once");
  }
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  if (size < 2) return 0;
  const std::size_t piece = 1 + bytes[0], max_message = 4 * bytes[1];
  const Bytes sent = fuzz::bytes_of(bytes + 2, size - 2);
  const auto elements = read(sent, sent.size() + 1, max_message);
  check_order(elements);
  fuzz::require(read(sent, piece, max_message) == elements,
                "what is found does not depend on how the bytes were split");
  return 0;
}
