// SPDX-License-Identifier: Apache-2.0
#include "service/commands/check_config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "service/commands/command_line.h"
#include "service/config/memory_bounds.h"
#include "service/config/options.h"
#include "service/config/print_options.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using Catch::Matchers::Contains;

namespace {

struct Output {
  std::string out, err;
  int exit_code;
};

// The output of the command for a file with this text.
Output check(const std::string& text) {
  const TemporaryDirectory directory;
  const std::string file = directory / "millrace.toml";
  std::ofstream(file) << text;
  std::ostringstream out, err;
  Console console{out, err};
  CommandLine program;
  add_check_config_command(program, console);
  program.run({"check-config", file}, console);
  return {out.str(), err.str(), console.exit_code};
}

std::string effective(const std::string& text) {
  const auto configuration = parse_options(text, "m.toml");
  INFO((configuration ? "" : configuration.error()));
  REQUIRE(configuration.has_value());
  return to_toml(configuration->options);
}

}  // namespace

TEST_CASE("check-config prints every value that is in force") {
  const Output output = check(R"([listen]
workers = "unix:/run/w.sock"
threads = 2
[[pipeline]]
name = "vad"
chunk = { preset = "silero-16k" }
)");
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  CHECK(output.out == R"([listen]
websocket = "127.0.0.1:8080"
zeromq = "tcp://127.0.0.1:5555"
admin = "127.0.0.1:9464"
workers = "unix:/run/w.sock"
threads = 2
receive_buffer = "64KiB"
plain = false
origins = []
try_page = false
explain = false

[limits]
message = "64KiB"
stream_buffer = "5s"
pause_buffer = "2min"
send_buffer = "64KiB"
connections = 10000
slab_bytes = "1GiB"
drain = "25s"
linger = "0s"
notice = "0s"

[gpu]
devices = "auto"
slab_bytes = "1GiB"
pageable = "allow"

[log]
level = "info"
format = "text"

[[pipeline]]
name = "vad"
rate = 16000
channels = 1
frames = "s16"
dtype = "s16"
state = "slot"
slots = 64
worker_wait = "30s"
bye_wait = "1min"
chunk = { size = 512, left = 64, right = 0, min = 0, tail = "every_start", align = "body", pad = "zero" }
batch = { rows = 16, max_wait = "2ms" }
# frames: size 512 (32 ms), step 512 (32 ms), first 512 (32 ms), left 64 (4 ms), right 0 (0 ms); a row has 576 columns
# latency of the rule: 32 ms from the first frame of a body until its row is ready, 0 ms from the last; then at most 2ms (max_wait) if a worker is free
# memory per worker at most: frames 257.9 MiB, rows 1.309 MiB, slabs 72 KiB, results 4 MiB, streams 1.5 MiB

# memory at most, with 10000 connections: frames 40.04 GiB, rows 204.5 MiB, slabs 1 GiB, results 1.221 GiB, streams 250.4 MiB, sockets 3.85 GiB
)");
}

TEST_CASE("incomplete messages of workers on other machines count as memory") {
  const std::string remote = "[listen]\nworkers_remote = \"tcp://127.0.0.1:5556\"\n";
  CHECK_THAT(effective(remote), Contains("results 2.471 GiB"));
  CHECK_THAT(effective(remote + "[limits]\nslab_bytes = \"1MiB\""), Contains("results 1.533 GiB"));
}

TEST_CASE("a stream without frames and results has a bound of some 45 KiB") {  // docs/sizing.md
  CHECK((bare_stream_bytes() + 512) / 1024 == 45);
}

TEST_CASE("check-config takes the file by position and by name") {
  const std::string file = "/nonexistent/m.toml";
  using Arguments = std::vector<std::string>;
  for (const auto& arguments :
       {Arguments{"check-config", file}, Arguments{"check-config", "--config", file}}) {
    std::ostringstream out, err;
    Console console{out, err};
    CommandLine program;
    add_check_config_command(program, console);
    program.run(arguments, console);
    CHECK(console.exit_code == 1);
    CHECK_THAT(err.str(), Contains("/nonexistent/m.toml: cannot be read"));
  }
}

TEST_CASE("check-config fails with one line about the error") {
  const Output output = check("[listen]\nthreads = 0\n");
  CHECK(output.exit_code == 1);
  CHECK(output.out == "");
  CHECK_THAT(output.err,
             Contains(".toml:2: key 'listen.threads' = 0: must be a whole number from 1 "
                      "to 1024\n"));
}

TEST_CASE("check-config warns of keys that are not implemented, and succeeds") {
  const Output output = check("[[pipeline]]\nendpoint = { silence = \"500ms\" }\n");
  CHECK(output.exit_code == 0);
  CHECK_THAT(output.err, Contains("warning: ") && Contains("not implemented yet, ignored\n"));
}
