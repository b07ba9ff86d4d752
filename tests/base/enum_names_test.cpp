// SPDX-License-Identifier: Apache-2.0
#include "base/enum_names.h"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace millrace;

namespace {

enum class Colour : std::uint8_t { red, dark_green, blue };

struct Lamp {
  enum class State { off, on };
};

}  // namespace

TEST_CASE("the name of a value is its enumerator, without namespaces and types around it") {
  STATIC_REQUIRE(name_of(Colour::red) == "red");
  STATIC_REQUIRE(name_of(Colour::dark_green) == "dark_green");
  STATIC_REQUIRE(name_of(Lamp::State::on) == "on");
}

TEST_CASE("a number without an enumerator has no name") {
  STATIC_REQUIRE(enumerator<static_cast<Colour>(2)>() == "blue");
  STATIC_REQUIRE(enumerator<static_cast<Colour>(3)>().empty());
}

TEST_CASE("the values of an enumeration are counted and listed by the compiler") {
  STATIC_REQUIRE(count_of<Colour>() == 3);
  STATIC_REQUIRE(values_of<Lamp::State>() == std::array{Lamp::State::off, Lamp::State::on});
}

TEST_CASE("a value is found by its name") {
  CHECK(value_named<Colour>("blue") == Colour::blue);
  CHECK_FALSE(value_named<Colour>("grey"));
  CHECK_FALSE(value_named<Colour>(""));
}
