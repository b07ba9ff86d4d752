// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "commands/console/commands.h"
#include "tests/commands/run_command.h"
#include "transport/access/token_list.h"

using namespace millrace;

namespace {

test::CommandOutput new_token_of(const std::vector<std::string>& name) {
  std::vector<std::string> arguments{"token", "new"};
  arguments.insert(arguments.end(), name.begin(), name.end());
  return test::run_command(add_token_command, arguments);
}

// The name for which the printed line accepts the printed token.
std::string accepted(const test::CommandOutput& output) {
  const auto end = output.out.find('\n');
  const auto list = TokenList::parse(output.out.substr(end + 1));
  REQUIRE(list.has_value());
  const auto name = list->accepts(output.out.substr(0, end));
  return std::string(name.value_or("none"));
}

}  // namespace

TEST_CASE("token new prints a token and the line that accepts it") {
  const auto output = new_token_of({"alice"});
  CHECK(output.exit_code == 0);
  CHECK(output.out.find('\n') == 43);
  CHECK(accepted(output) == "alice");
  CHECK(new_token_of({"alice"}).out != output.out);
}

TEST_CASE("token new without a name prints a name that differs each time") {
  const std::string name = accepted(new_token_of({}));
  CHECK(name.starts_with("client-"));
  CHECK(accepted(new_token_of({})) != name);
}

TEST_CASE("token new refuses a name that the file cannot have") {
  for (const char* name : {"al ice", "al\nice", "\xc3\xa9"}) {
    const auto output = new_token_of({name});
    CHECK(output.exit_code == 1);
    CHECK(output.out.empty());
    CHECK(output.err ==
          "millrace token new: NAME: must have 1 to 128 printable characters without spaces\n");
  }
}
