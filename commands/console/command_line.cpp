// SPDX-License-Identifier: Apache-2.0
#include "commands/console/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <ostream>
#include <utility>

namespace millrace {
namespace {

// The name with those of the commands above: "millrace token new".
std::string full_name(const CLI::App& app) {
  return (app.get_parent() ? full_name(*app.get_parent()) + " " : "") + app.get_name();
}

// The text after `millrace` up to the first word that is not a command where one is expected; empty
// if all are.
std::string unknown_command(const CLI::App* app, const std::vector<std::string>& arguments) {
  std::string path;
  for (const std::string& argument : arguments) {
    const auto below = app->get_subcommands([](const CLI::App*) { return true; });
    if (below.empty() || argument.starts_with("-")) return {};
    path += path.empty() ? argument : " " + argument;
    const auto found = std::ranges::find(below, argument, &CLI::App::get_name);
    if (found == below.end()) return path;
    app = *found;
  }
  return {};
}

}  // namespace

Option& Option::type(const std::string& name) {
  option_.type_name(name);
  return *this;
}

Option& Option::shows_default() {
  option_.capture_default_str();
  return *this;
}

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
  option_.check(CLI::IsMember(std::move(values)));
  return *this;
}

Option& Option::between(std::uint32_t least, std::uint32_t most) {
  option_.check(CLI::Range(least, most));
  return *this;
}

Option& Option::between(double least, double most) {
  option_.check(CLI::Range(least, most));
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_.excludes(&other.option_);
  return *this;
}

Option Command::add(const std::string& name, Target into, const std::string& help) {
  if (auto* const* flag = std::get_if<bool*>(&into))
    return Option(*app_.add_flag(name, **flag, help));
  CLI::Option* option =
      std::visit([&](auto* value) { return app_.add_option(name, *value, help); }, into);
  // Negative numbers would be converted to large ones.
  if (std::holds_alternative<std::uint32_t*>(into) ||
      std::holds_alternative<std::uint64_t*>(into) ||
      std::holds_alternative<std::vector<std::uint64_t>*>(into))
    option->check([](const std::string& text) {
      return text.starts_with('-') ? "\"" + text + "\" must not be negative" : std::string();
    });
  // One value each time that it is given. CLI11 would divide others that are in brackets.
  if (std::holds_alternative<std::vector<std::string>*>(into) && name.starts_with('-'))
    option->allow_extra_args(false);
  return Option(*option);
}

Command Command::add_command(const std::string& name, const std::string& description) {
  app_.require_subcommand(1);
  return Command(*app_.add_subcommand(name, description));
}

void Command::run(std::function<void()> run) { app_.callback(std::move(run)); }

void Command::run(Console& console, std::function<void()> run) {
  app_.callback([&app = app_, &console, run = std::move(run)] {
    try {
      run();
    } catch (const std::exception& error) {
      console.err << full_name(app) << ": " << error.what() << '\n';
      console.exit_code = 1;
    }
  });
}

CommandLine::CommandLine(const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, "millrace")) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

void CommandLine::run(std::vector<std::string> arguments, Console& console) {
  if (const std::string unknown = unknown_command(app_.get(), arguments); !unknown.empty()) {
    console.err << "millrace: there is no command \"" << unknown << "\"; see millrace --help\n";
    console.exit_code = 1;
    return;
  }
  std::ranges::reverse(arguments);  // CLI11 expects them in reverse order
  try {
    app_->parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app_->exit(error, console.out, console.err);
    } else {
      console.err << "millrace: " << error.what() << "\n";
      console.exit_code = 1;
    }
  }
}

}  // namespace millrace
