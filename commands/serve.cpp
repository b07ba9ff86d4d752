// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>

#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "gpu/host/device_fault.h"
#include "service/config/descriptors.h"
#include "service/config/memory_bounds.h"
#include "service/config/options.h"
#include "service/config/toml/units.h"
#include "service/log/log.h"
#include "service/server/server.h"
#include "service/watch/memory_use.h"
#include "transport/net/peer_address.h"

namespace millrace {

namespace {

// Logs the memory that the service may need, and the memory that is available.
void compare_memory(const Options& options, Log& log) {
  const auto use = memory_use();
  if (!use) return;
  const std::uint64_t most = memory_bounds(options).all();
  std::uint64_t with_one = 0;  // with one worker for each pipeline
  for (const PipelineOptions& pipeline : options.pipelines)
    with_one += memory_bounds(pipeline, options.limits).all();
  // The bound of the default limit exceeds the memory of most machines, but no operator expects
  // this number of clients.
  const bool is_chosen = options.limits.connections != LimitOptions{}.connections;
  const std::string_view note =
      (is_chosen ? most : std::min(with_one, most)) > use->limit
          ? "if memory is short, streams are refused; to need less, lower limits.connections"
      : is_chosen ? "at_most assumes that limits.connections clients fill their buffers"
                  : "check-config prints the bound for all connections";
  log.info("memory", {{"at_most", is_chosen ? rounded_bytes(most) : ""},
                      {"there_is", rounded_bytes(use->limit)},
                      {"one_worker_each", rounded_bytes(std::min(with_one, most))},
                      {"note", note}});
}

std::terminate_handler default_terminate() {
  static const std::terminate_handler handler = std::get_terminate();
  return handler;
}

[[noreturn]] void exit_with(std::string_view line) {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

// The terminate handler, for an exception in a noexcept function. If an allocation fails during a
// change of the state that workers and streams share, rows would be lost or duplicated; so the
// process ends. Does not allocate.
void on_terminate() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    exit_with("millrace: out of memory\n");
  } catch (...) {  // a bug
    default_terminate()();
  }
  // If GCC 12 has inlined the noexcept function, std::current_exception() is null here.
  if (std::uncaught_exceptions() > 0) exit_with("millrace: an error, probably out of memory\n");
  default_terminate()();
}

// Runs the service to its end; returns the exit code. `lowered_because` is empty if the limit on
// connections is that of the configuration.
int run(const Configuration& configuration, std::string_view lowered_because) {
  const Options& options = configuration.options;
  LogWriter writer(options.log);
  Server server(configuration, writer);
  Log& log = server.log();
  if (!lowered_because.empty()) log.warning("connection limit lowered", {{"why", lowered_because}});
  compare_memory(options, log);
  log.info("listening", {{"websocket", text_of(server.websocket())},
                         {"zeromq", server.zeromq()},
                         {"workers", options.listen.workers},
                         {"workers_remote", server.workers_remote()},
                         {"admin", text_of(server.admin())}});
  const bool drained = server.run();
  // From here on a signal must not change the exit code. The other remaining threads block all
  // signals.
  block_signals({SIGTERM, SIGINT, SIGHUP});
  log.info("stopped", {{"drained", drained ? "yes" : "no"}});
  return drained && server.failures().empty() ? 0 : 1;
}

void serve(const std::string& config, Console& console) {
  auto configuration = config.empty() ? parse_options("", "") : load_options(config);
  if (!configuration) {
    console.err << "millrace: " << configuration.error() << "\n";
    console.exit_code = 1;
    return;
  }
  // SIGPIPE: a disconnected client is an error of its connection only. SIGXFSZ: a limit on file
  // sizes is an error of the log or of a worker's slabs only. SIGHUP must not kill the process
  // before it can reload. Ignoring SIGCHLD reaps orphans if this process is PID 1 of a container.
  (void)default_terminate();
  std::set_terminate(on_terminate);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGHUP, SIGCHLD}) std::signal(number, SIG_IGN);
  const std::string lowered_because = fit_to_descriptors(configuration->options.limits.connections);
  try {
    console.exit_code = run(*configuration, lowered_because);
  } catch (const DeviceFailure& error) {
    // EX_CONFIG: a restart does not help if a device does not exist. It may if one had no memory
    // left.
    console.err << "millrace: " << error.what() << "\n";
    console.exit_code = error.fault() == DeviceFault::other ? EX_CONFIG : 1;
  } catch (const std::bad_alloc&) {
    console.err << "millrace: out of memory\n";
    console.exit_code = 1;
  } catch (const std::exception& error) {
    console.err << "millrace: " << error.what() << "\n";
    console.exit_code = 1;
  }
}

}  // namespace

void add_serve_command(CommandLine& program, Console& console) {
  Command command = program.add("serve", "Run the service");
  auto config = std::make_shared<std::string>();
  command.add("--config,FILE", config.get(),
              "Configuration file (TOML); default: none, with listeners on loopback");
  command.run([config, &console] { serve(*config, console); });
}

}  // namespace millrace
