// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>

#include "service/commands/bench.h"
#include "service/commands/check_config.h"
#include "service/commands/chunk.h"
#include "service/commands/healthcheck.h"
#include "service/commands/serve.h"
#include "service/commands/stream.h"
#include "service/commands/tap.h"

int main(int argc, char** argv) {
  using namespace millrace;
  CLI::App program("Millrace: chunks, batches and state resets for streaming models", "millrace");
  program.set_version_flag("--version", MILLRACE_VERSION);
  program.require_subcommand(1);
  Console console{std::cout, std::cerr};
  add_serve_command(program, console);
  add_stream_command(program, console);
  add_tap_command(program, console);
  add_chunk_command(program, console);
  add_bench_command(program, console);
  add_check_config_command(program, console);
  add_healthcheck_command(program, console);
  const std::string first = argc > 1 ? argv[1] : "-";
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
  if (!first.starts_with("-") && std::ranges::none_of(program.get_subcommands({}), is_first)) {
    std::cerr << "millrace: there is no command \"" << first << "\"; see millrace --help\n";
    return 1;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    std::cerr << "millrace: " << error.what() << "\n";
    return 1;
  }
  return console.exit_code;
}
