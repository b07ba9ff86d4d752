// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "commands/console/console.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace millrace {

// An option or a positional argument of a command, valid as long as its CommandLine. Each function
// returns *this. Confined to one thread.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option& type(const std::string& name);  // type of the value in the help
  Option& shows_default();                // the help shows its present value as the default
  Option& required();
  Option& one_of(std::vector<std::string> values);
  Option& between(std::uint32_t least, std::uint32_t most);
  Option& between(double least, double most);
  Option& excludes(const Option& other);

 private:
  CLI::Option& option_;
};

// A command of the program, `millrace NAME …`, valid as long as its CommandLine. Confined to one
// thread.
class Command {
 public:
  // The variable for the value of an option. With a bool, the option is a flag.
  using Target =
      std::variant<bool*, std::string*, std::vector<std::string>*, std::vector<std::uint64_t>*,
                   std::int32_t*, std::uint32_t*, std::uint64_t*, double*, std::optional<double>*>;

  explicit Command(CLI::App& app) : app_(app) {}

  // `name` is --NAME, or NAME for a positional argument, or both with a comma. `into` must live as
  // long as the function that is passed to run().
  Option add(const std::string& name, Target into, const std::string& help);

  // Adds a command below this one: `millrace NAME OTHER …`. This one then has no function of its
  // own.
  Command add_command(const std::string& name, const std::string& description);

  // Sets the function that runs the command, called when its arguments have been parsed.
  void run(std::function<void()> run);
  // The same for a function that may throw: then one line on console.err, with the command's name,
  // and exit code 1. `console` must outlive the CommandLine.
  void run(Console& console, std::function<void()> run);

 private:
  CLI::App& app_;
};

// The program's command line, parsed by CLI11. Only command_line.cpp includes CLI11, as it takes
// ten seconds to compile. Confined to one thread.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description = "", const std::string& version = "");
  ~CommandLine();

  Command add(const std::string& name, const std::string& description);

  // Parses the arguments after the program's name and runs the command. Prints help and version on
  // console.out. After a wrong argument: one line on console.err, exit code 1.
  void run(std::vector<std::string> arguments, Console& console);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace millrace
