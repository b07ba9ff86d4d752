// SPDX-License-Identifier: Apache-2.0
#include "input/containers/bytes_behind.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace millrace {
namespace {

// The decision about bytes that come in parts of this size.
bool are_samples(const SampleBytes& header, const std::string& bytes, std::size_t most) {
  BytesBehind behind(header);
  for (std::size_t at = 0; !behind.decided();) {
    const std::size_t count = std::min({most, bytes.size() - at, behind.room().size()});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, behind.room().begin());
    behind.add(count);
    at += count;
  }
  return behind.are_samples();
}

}  // namespace

TEST_CASE("what follows the declared samples does not depend on the parts in which it comes") {
  const std::string zeros(5'000, '\0'), noise(100, '\x91'), text(100, 'x');
  const SampleBytes declared{.format = WavFormat{.bits = 16, .block = 4},
                             .begin = 44,
                             .declared = 1'000,
                             .field = {.at = 40, .bytes = 4}};
  SampleBytes unknown = declared;
  unknown.declared = 0;
  for (const std::size_t most : {1u, 63u, 64u, 5'000u}) {
    CHECK(are_samples(declared, noise, most));
    CHECK(are_samples(declared, zeros + noise, most));
    CHECK(are_samples(declared, zeros + "\x91", most));
    CHECK(!are_samples(declared, zeros + "LIST", most));
    CHECK(!are_samples(declared, zeros, most));
    CHECK(!are_samples(declared, "\x91\x92", most));
    CHECK(are_samples(unknown, zeros, most));
    CHECK(are_samples(unknown, "an " + text, most));
    CHECK(!are_samples(unknown, "LIST1234" + zeros, most));
  }
}

}  // namespace millrace
