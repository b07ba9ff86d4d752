// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <memory>
#include <ostream>
#include <string>

#include "commands/console/command_line.h"
#include "service/config/access_files.h"
#include "service/config/options.h"
#include "service/config/print_options.h"

namespace millrace {

namespace {

void check_config(const std::string& file, Console& console) {
  const auto configuration = file.empty() ? parse_options("", "") : load_options(file);
  const auto fail = [&](const ConfigError& error) {
    console.err << error << '\n';
    console.exit_code = 1;
  };
  if (!configuration) return fail(configuration.error());
  if (const auto access = load_access(*configuration); !access) return fail(access.error());
  console.out << to_toml(configuration->options);
}

}  // namespace

void add_check_config_command(CommandLine& program, Console& console) {
  Command command =
      program.add("check-config", "Check a configuration and print the values in effect");
  const auto file = std::make_shared<std::string>();
  command.add("--config,FILE", file.get(),
              "Configuration file (TOML); default: none, which prints the default values");
  command.run([file, &console] { check_config(*file, console); });
}

}  // namespace millrace
