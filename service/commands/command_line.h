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

#include "service/commands/console.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace millrace {

// An option or a positional argument of a command. Each function returns *this.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option& type(const std::string& name);  // of its value, as the help shows it
  Option& shows_default();                // the help shows the value that it has now
  Option& required();
  Option& one_of(std::vector<std::string> values);
  Option& between(std::uint32_t least, std::uint32_t most);
  Option& between(double least, double most);
  Option& excludes(const Option& other);

 private:
  CLI::Option& option_;
};

// A command of the program, `millrace NAME …`.
class Command {
 public:
  // Where the value of an option is stored; a bool makes the option a flag.
  using Target = std::variant<bool*, std::string*, std::vector<std::string>*, std::int32_t*,
                              std::uint32_t*, std::uint64_t*, double*, std::optional<double>*>;

  explicit Command(CLI::App& app) : app_(app) {}

  // `name` is --NAME, or NAME for a positional argument, or both with a comma. `into` lives as long
  // as the function that is given to run().
  Option add(const std::string& name, Target into, const std::string& help);

  // What the command does, once its arguments are parsed.
  void run(std::function<void()> run);

 private:
  CLI::App& app_;
};

// The program's command line. CLI11 parses it; only one source includes CLI11, which takes ten
// seconds to compile wherever it is included.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description = "", const std::string& version = "");
  ~CommandLine();

  Command add(const std::string& name, const std::string& description);

  // Parses the arguments that follow the program's name, and runs the command. Help and version are
  // printed on console.out. A wrong argument is one line on console.err and exit code 1.
  void run(std::vector<std::string> arguments, Console& console);

 private:
  bool has(std::string_view command) const;

  std::unique_ptr<CLI::App> app_;
};

}  // namespace millrace
