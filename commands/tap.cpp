// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/time.h"
#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "commands/output/tap_lines.h"
#include "service/config/toml/units.h"
#include "workers/library/worker.h"

namespace millrace {
namespace {

struct TapOptions {
  std::string url;  // workers' address of the service; empty: the default
  std::string pipeline = "default";
  std::string data = "none", wait = "30s";
};

Duration wait_of(const std::string& text) {
  const auto wait = parse_time(text);
  if (wait && *wait >= Duration::zero()) return *wait;
  throw std::invalid_argument("--wait: \"" + text + "\" must be a time such as 30s, or 0s");
}

// Prints every row of a pipeline as a line (tap_lines.h). The lines of a batch are flushed before
// it is answered. While tap is the only worker, its answers to the rows are the lines. When another
// worker attaches, tap leaves and attaches again as a watcher. Throws WorkerError.
class Tap {
 public:
  Tap(const TapOptions& options, Console& console)
      : options_(options),
        wait_(wait_of(options.wait)),
        console_(console),
        lines_(options.data == "crc32c") {}

  // Works until the service ends it or a signal stops it. Returns true if it left because other
  // workers are attached.
  bool work() {
    auto worker = attach({.credits = credits, .alone = true});
    return worker && !run(*worker) && worker->company() > 0;
  }

  void watch() {
    if (auto worker = attach({.watch = true})) (void)run(*worker);
  }

 private:
  static constexpr std::uint32_t credits = 2;

  // Returns nullopt if a signal stopped it.
  std::optional<Worker> attach(WorkerSettings settings) {
    struct Stopped {};
    settings.pipeline = options_.pipeline;
    settings.name = "tap";
    settings.wait = wait_;
    settings.on_wait = [this](const std::string& why, Duration wait) {
      console_.err << "millrace tap: " << why << "; waiting for up to " << readable(wait)
                   << std::endl;
    };
    const Termination termination([] {});
    try {
      std::optional<Worker> worker(std::in_place, options_.url, settings, [&] {
        if (termination.requested()) throw Stopped();
      });
      if (termination.requested()) worker.reset();
      return worker;
    } catch (const Stopped&) {
      return std::nullopt;
    }
  }

  // Returns true if a signal stopped it.
  bool run(Worker& worker) {
    const Termination termination([&worker] { worker.interrupt(); });
    while (auto batch = worker.next()) print(worker, *batch);
    if (!termination.requested()) return false;
    worker.bye();
    // Batches that have arrived are answered too. Otherwise they would be handed over again, and a
    // watcher would print them twice.
    for (std::uint32_t i = 0; i < credits; ++i)
      if (auto batch = worker.next_until(Clock::now())) print(worker, *batch);
    return true;
  }

  void print(Worker& worker, WorkerBatch& batch) {
    lines_.format(batch, worker.columns(), worker.width_buckets());
    std::ostream& out = console_.out;
    for (const Answer& line : lines_.framed()) out << line.data << '\n';
    for (const Answer& line : lines_.marks()) out << line.data << '\n';
    if (!out.flush()) throw WorkerError("the rows cannot be written");
    worker.done(batch, lines_.framed(), lines_.marks());
  }

  const TapOptions& options_;
  const Duration wait_;  // longest wait until the service listens
  Console& console_;
  TapLines lines_;
};

}  // namespace

void add_tap_command(CommandLine& program, Console& console) {
  auto options = std::make_shared<TapOptions>();
  Command command = program.add("tap", "Print each row of a pipeline as a line of JSON");
  command
      .add("--url", &options->url,
           "Workers' address of the service; default: $MILLRACE_WORKERS, else a per-user socket")
      .type("unix:PATH|tcp://HOST:PORT");
  command.add("--pipeline", &options->pipeline, "Pipeline to watch; default: default").type("NAME");
  command
      .add("--data", &options->data,
           "Data of each row: none, or crc32c, a checksum of its values; default: none")
      .one_of({"none", "crc32c"});
  command.add("--wait", &options->wait, "Longest time to wait until the service listens")
      .type("TIME")
      .shows_default();
  command.run(console, [options, &console] {
    const BlockedSignals blocked;
    Tap tap(*options, console);
    if (tap.work()) tap.watch();
  });
}

}  // namespace millrace
