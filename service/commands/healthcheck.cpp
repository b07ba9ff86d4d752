// SPDX-License-Identifier: Apache-2.0
#include "service/commands/healthcheck.h"

#include <memory>
#include <ostream>
#include <string>

#include "service/commands/command_line.h"
#include "service/commands/http_status.h"
#include "service/config/units.h"

namespace millrace {

namespace {

struct Arguments {
  std::string url = "http://127.0.0.1:9464/readyz";
  std::string timeout = "2s";
};

Result<void, std::string> check(const Arguments& arguments) {
  const auto timeout = parse_time(arguments.timeout);
  if (!timeout) return "--timeout: \"" + arguments.timeout + "\" must be a time, like 2s";
  const auto status = http_status(arguments.url, *timeout);
  if (!status) return status.error();
  if (*status != 200) return arguments.url + ": status " + std::to_string(*status);
  return {};
}

}  // namespace

void add_healthcheck_command(CommandLine& program, Console& console) {
  Command command =
      program.add("healthcheck", "Ask a service whether it is ready: exit code 0 or 1");
  const auto arguments = std::make_shared<Arguments>();
  command.add("--url", &arguments->url, "What is asked").shows_default();
  command.add("--timeout", &arguments->timeout, "How long it may take").shows_default();
  command.run([arguments, &console] {
    const auto healthy = check(*arguments);
    if (healthy) return;
    console.err << "millrace healthcheck: " << healthy.error() << '\n';
    console.exit_code = 1;
  });
}

}  // namespace millrace
