// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/arrays/npy_header.h"

#include <catch2/catch.hpp>
#include <span>

#include "tests/training/catalogs/npy_files.h"

namespace millrace::training {
namespace {

Result<NpyHeader, std::string> parsed(const std::string& text) {
  return parse_npy_header(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("the header of a .npy file has type, shape and the place of the values") {
  const auto version = static_cast<char>(GENERATE(1, 2, 3));
  const std::string text = npy_header("<i4", "(3, 4)", "False", version);
  const auto header = parsed(text + "values");
  REQUIRE(header.has_value());
  CHECK(header->element == CompanionElement::s32);
  CHECK(header->shape == std::vector<std::uint64_t>{3, 4});
  CHECK(header->begin == text.size());
  CHECK(header->begin % 64 == 0);
  CHECK(parsed(npy_header("<f2", "(5,)"))->shape == std::vector<std::uint64_t>{5});
  CHECK(parsed(npy_header("<f2", "()"))->shape.empty());
}

TEST_CASE("arrays in Fortran order, of other types and of other versions are errors") {
  CHECK(parsed(npy_header("<i4", "(3, 4)", "True")).has_error());
  CHECK(parsed(npy_header("<i4", "(3,)", "True")).has_value());
  CHECK(parsed(npy_header("<f8", "(3,)")).error() ==
        "has values of the type <f8; supported: int16, int32, int64, uint8, bool, float16, "
        "float32");
  CHECK(parsed(npy_header(">f4", "(3,)")).has_error());
  CHECK(parsed(npy_header("<f4", "(3,)", "False", 4)).has_error());
}

TEST_CASE("a header that was cut anywhere, or is damaged, is an error") {
  const std::string good = npy_header("<f4", "(3, 4)");
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(parsed(good.substr(0, size)).has_error());
  for (const char* shape : {"(3", "3", "(3 4)", "(-1,)", "(3,,)", "[3]", "(99999999999999999999,)"})
    CHECK(parsed(npy_header("<f4", shape)).has_error());
}

}  // namespace millrace::training
