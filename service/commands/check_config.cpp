// SPDX-License-Identifier: Apache-2.0
#include "service/commands/check_config.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "service/config/options.h"
#include "service/config/print_options.h"

namespace millrace {

namespace {

void check_config(const std::string& file, Console& console) {
  const auto configuration = file.empty() ? parse_options("", "") : load_options(file);
  if (!configuration) {
    console.err << configuration.error() << '\n';
    console.exit_code = 1;
    return;
  }
  for (const auto& warning : configuration->warnings) console.err << "warning: " << warning << '\n';
  console.out << to_toml(configuration->options);
}

}  // namespace

void add_check_config_command(CLI::App& program, Console& console) {
  CLI::App* command =
      program.add_subcommand("check-config", "Check a configuration and print what is in force");
  const auto file = std::make_shared<std::string>();
  command->add_option("--config,FILE", *file, "The configuration; none: the values without one");
  command->callback([file, &console] { check_config(*file, console); });
}

}  // namespace millrace
