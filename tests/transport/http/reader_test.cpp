// SPDX-License-Identifier: Apache-2.0
#include "transport/http/reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "transport/net/limits.h"

namespace millrace {
namespace {

using Outcome = Result<HttpQuery, HttpFault>;

// Adds `bytes` in pieces of `piece` bytes until the reader has a result.
std::optional<Outcome> give(HttpReader& reader, std::string_view bytes, std::size_t piece) {
  while (!bytes.empty()) {
    const auto space = reader.space();
    const std::size_t size = std::min({piece, space.size(), bytes.size()});
    std::memcpy(space.data(), bytes.data(), size);
    bytes.remove_prefix(size);
    if (auto outcome = reader.add(size)) return outcome;
  }
  return std::nullopt;
}

HttpFault fault_of(std::string_view bytes) {
  HttpReader reader;
  const auto outcome = give(reader, bytes, bytes.size());
  REQUIRE((outcome && outcome->has_error()));
  return outcome->error();
}

// A header of `size` bytes.
std::string header_of(std::size_t size) {
  const std::string begin = "GET / HTTP/1.1\r\nX: ", end = "\r\n\r\n";
  return begin + std::string(size - begin.size() - end.size(), 'x') + end;
}

TEST_CASE("a header is read the same if it arrives in pieces of any size") {
  const std::size_t piece = GENERATE(1, 2, 3, 7, 50, 1000);
  HttpReader reader;
  const auto query = give(reader, "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX: 1\r\nx: 2\r\n\r\n", piece);
  REQUIRE((query && query->has_value()));
  CHECK((*query)->method == "GET");
  CHECK((*query)->target == "/a?b=c");
  CHECK((*query)->path() == "/a");
  CHECK((*query)->version == 11);
  CHECK((*query)->all("X") == std::vector<std::string_view>{"1", "2"});
  CHECK(reader.rest().empty());
}

TEST_CASE("bytes after a header are kept") {
  HttpReader reader;
  REQUIRE(give(reader, "GET / HTTP/1.1\r\n\r\nframes", 100));
  CHECK(reader.rest() == "frames");
}

TEST_CASE("a header may have the maximum size, and not one byte more, in pieces of any size") {
  const std::size_t piece = GENERATE(1, 16, 100, 2048);
  HttpReader whole, over;
  const auto query = give(whole, header_of(max_header_bytes), piece);
  REQUIRE(query.has_value());
  CHECK(query->has_value());
  const auto fault = give(over, header_of(max_header_bytes + 1), piece);
  REQUIRE((fault && fault->has_error()));
  CHECK(fault->error() == HttpFault::too_long);
}

TEST_CASE("a header without an end is refused when it is too long") {
  CHECK(fault_of("GET / HTTP/1.1\r\nX: " + std::string(max_header_bytes, 'x')) ==
        HttpFault::too_long);
}

TEST_CASE("a request with a body, or that is not HTTP, is malformed") {
  CHECK(fault_of("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n") == HttpFault::malformed);
  CHECK(fault_of("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == HttpFault::malformed);
  CHECK(fault_of("GET / HTTP/3.0\r\n\r\n") == HttpFault::malformed);
  CHECK(fault_of("\x16\x03\x01\x02") == HttpFault::malformed);
}

TEST_CASE("a request may have 64 fields, and not one more") {
  const auto fields = [](int n) {
    std::string text = "GET / HTTP/1.1\r\n";
    while (n-- > 0) text += "a:b\r\n";
    return text + "\r\n";
  };
  HttpReader reader;
  const auto query = give(reader, fields(64), 10'000);
  REQUIRE((query && query->has_value()));
  CHECK((*query)->fields.size() == 64);
  CHECK(fault_of(fields(65)) == HttpFault::too_long);
}

TEST_CASE(
    "an end within a request is the fault malformed, and an end before it the fault disconnected") {
  HttpReader reader;
  CHECK(reader.end() == HttpFault::disconnected);
  CHECK_FALSE(give(reader, "GET / HT", 100));
  CHECK(reader.end() == HttpFault::malformed);
}

}  // namespace
}  // namespace millrace
