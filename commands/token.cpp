// SPDX-License-Identifier: Apache-2.0
#include "transport/access/token.h"

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include "commands/console/command_line.h"
#include "commands/console/commands.h"
#include "transport/access/token_list.h"

namespace millrace {

namespace {

void print_new(const std::string& name, Console& console) {
  const std::string token = new_token();
  const std::string digest = to_hex(digest_of(token));
  const std::string line = digest + " " + (name.empty() ? "client-" + digest.substr(0, 8) : name);
  if (const auto list = TokenList::parse(line); !list || !list->accepts(token))
    throw std::runtime_error("NAME: must have 1 to 128 printable characters without spaces");
  console.out << token << '\n' << line << '\n';
}

}  // namespace

void add_token_command(CommandLine& program, Console& console) {
  Command tokens = program.add("token", "Tokens of clients, for [access] tokens");
  Command command = tokens.add_command(
      "new", "Print a new token for a client, and then its line for the file of tokens");
  const auto name = std::make_shared<std::string>();
  command.add("NAME", name.get(), "Name in the line; default: a name with a part of the digest");
  command.run(console, [name, &console] { print_new(*name, console); });
}

}  // namespace millrace
