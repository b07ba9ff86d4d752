// SPDX-License-Identifier: Apache-2.0
#include "service/commands/tap.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <ostream>

#include "base/time.h"
#include "service/commands/tap_lines.h"
#include "service/commands/termination.h"
#include "workers/worker.h"

namespace millrace {
namespace {

class Tap {
 public:
  Tap(const TapOptions& options, std::ostream& out)
      : options_(options), out_(out), lines_(options.checksums) {}

  // Until the service ends it or it is stopped. True when it left because it has company.
  bool work() {
    Worker worker(
        options_.url,
        {.pipeline = options_.pipeline, .name = "tap", .credits = credits, .alone = true});
    return !run(worker) && worker.company() > 0;
  }

  void watch() {
    Worker worker(options_.url, {.pipeline = options_.pipeline, .name = "tap", .watch = true});
    (void)run(worker);
  }

 private:
  static constexpr std::uint32_t credits = 2;

  // True when it was stopped.
  bool run(Worker& worker) {
    const Termination termination([&worker] { worker.interrupt(); });
    while (auto batch = worker.next()) print(worker, *batch);
    if (!termination.came()) return false;
    worker.bye();
    // What has arrived would go to another worker and be printed twice.
    for (std::uint32_t i = 0; i < credits; ++i)
      if (auto batch = worker.next_until(Clock::now())) print(worker, *batch);
    return true;
  }

  void print(Worker& worker, WorkerBatch& batch) {
    lines_.read(batch);
    for (const Answer& line : lines_.framed()) out_ << line.data << '\n';
    for (const Answer& line : lines_.marks()) out_ << line.data << '\n';
    if (!out_.flush()) throw WorkerError("the rows cannot be written");
    worker.done(batch, lines_.framed(), lines_.marks());
  }

  const TapOptions& options_;
  std::ostream& out_;
  TapLines lines_;
};

}  // namespace

void tap(const TapOptions& options, std::ostream& out) {
  Tap tap(options, out);
  if (tap.work()) tap.watch();
}

void add_tap_command(CLI::App& program, Console& console) {
  auto options = std::make_shared<TapOptions>();
  auto values = std::make_shared<std::string>("none");
  CLI::App& command =
      *program.add_subcommand("tap", "Prints every row of a pipeline as a line of JSON");
  command.add_option("--url", options->url, "Where the service listens for workers")
      ->type_name("unix:PATH|tcp://HOST:PORT");
  command.add_option("--pipeline", options->pipeline, "Whose rows")->type_name("NAME");
  command.add_option("--data", *values, "crc32c adds a checksum of each row's values")
      ->check(CLI::IsMember({"none", "crc32c"}));
  command.callback([options, values, &console] {
    options->checksums = *values == "crc32c";
    const BlockedSignals blocked;
    try {
      tap(*options, console.out);
    } catch (const std::exception& error) {
      console.err << "millrace tap: " << error.what() << '\n';
      console.exit_code = 1;
    }
  });
}

}  // namespace millrace
