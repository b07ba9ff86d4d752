// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "chunker/body_size.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

constexpr std::uint64_t rows = 500;

// The sizes that the Python program draws for the first rows of the stream.
std::vector<std::uint32_t> drawn_by_python(const SizeRule& rule, const std::string& stream) {
  const TemporaryDirectory directory;
  const std::string out = directory / "sizes";
  std::string command = MILLRACE_DRAWN_SIZES " " + std::to_string(rule.seed) + " '" + stream +
                        "' " + std::to_string(rows);
  for (std::size_t i = 0; i < rule.sizes.size(); ++i)
    command += " " + std::to_string(rule.sizes[i]);
  REQUIRE(std::system((command + " > " + out).c_str()) == 0);
  std::vector<std::uint32_t> sizes;
  std::ifstream in(out);
  for (std::uint32_t size = 0; in >> size;) sizes.push_back(size);
  return sizes;
}

std::vector<std::uint32_t> drawn(const SizeRule& rule, const std::string& stream) {
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t row = 0; row < rows; ++row) sizes.push_back(drawn_size(rule, stream, row));
  return sizes;
}

SizeRule random_rule(SizeList sizes, std::uint64_t seed, SizeRule::Per per = SizeRule::Per::chunk) {
  return {SizeRule::By::random, std::move(sizes), seed, per};
}

const SizeList list({1280, 2560, 5120, 10240});
const SizeList range(640, 16000, 640);

TEST_CASE("a Python program of ten lines draws the same sizes", "[reference]") {
  for (const SizeList& sizes : {list, range})
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0} >> 1})
      for (const std::string stream : {"", "call-17", "a b", "Zürich"}) {
        CAPTURE(seed, stream);
        const SizeRule rule = random_rule(sizes, seed);
        CHECK(drawn(rule, stream) == drawn_by_python(rule, stream));
      }
}

TEST_CASE("every size is drawn about equally often") {
  std::vector<std::size_t> counts(list.size());
  for (std::uint64_t row = 0; row < 4000; ++row) {
    const std::uint32_t size = drawn_size(random_rule(list, 7), "stream", row);
    for (std::size_t i = 0; i < list.size(); ++i) counts[i] += list[i] == size ? 1 : 0;
  }
  for (const std::size_t count : counts) CHECK((count > 900 && count < 1100));
}

TEST_CASE("drawn per stream, all rows of a stream have the size of its first row") {
  const SizeRule per_chunk = random_rule(range, 7);
  const SizeRule per_stream = random_rule(range, 7, SizeRule::Per::stream);
  for (const std::string stream : {"a", "b", "c"})
    CHECK(drawn(per_stream, stream) ==
          std::vector<std::uint32_t>(rows, drawn_size(per_chunk, stream, 0)));
}

TEST_CASE("seed and name of the stream decide what is drawn") {
  CHECK(drawn(random_rule(list, 7), "a") != drawn(random_rule(list, 8), "a"));
  CHECK(drawn(random_rule(list, 7), "a") != drawn(random_rule(list, 7), "b"));
}

}  // namespace
}  // namespace millrace
