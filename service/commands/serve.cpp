// SPDX-License-Identifier: Apache-2.0
#include "service/commands/serve.h"

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include "gpu/host/device_fault.h"
#include "service/commands/command_line.h"
#include "service/commands/termination.h"
#include "service/config/descriptors.h"
#include "service/config/memory_bounds.h"
#include "service/config/options.h"
#include "service/config/units.h"
#include "service/log/log.h"
#include "service/server/server.h"
#include "service/watch/memory_use.h"

namespace millrace {

namespace {

std::string text_of(const Tcp::endpoint& endpoint) {
  std::ostringstream text;
  text << endpoint;
  return text.str();
}

// What may be needed, and what there is.
void compare_memory(const Options& options, Log& log) {
  const auto use = memory_use();
  if (!use) return;
  const std::uint64_t most = memory_bounds(options).all();
  std::uint64_t with_one = 0;  // with one worker for each pipeline
  for (const PipelineOptions& pipeline : options.pipelines)
    with_one += memory_bounds(pipeline, options.limits).all();
  // As everywhere with the default limits: nothing that has to be changed.
  const std::string_view note =
      most <= use->most
          ? "at_most is for limits.connections clients that fill their buffers"
          : "if memory is short, streams are refused; lower limits.connections to need less";
  log.info("memory", {{"at_most", rounded_bytes(most)},
                      {"there_is", rounded_bytes(use->most)},
                      {"one_worker_each", rounded_bytes(std::min(with_one, most))},
                      {"note", note}});
}

std::terminate_handler usual_end() {
  static const std::terminate_handler usual = std::get_terminate();
  return usual;
}

[[noreturn]] void end_with(std::string_view line) {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

// Called for an exception where none may pass. If an allocation fails in the middle of a change to
// the state that workers and streams share, rows would be lost or doubled: the process ends.
// Allocates nothing.
void end_process() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    end_with("millrace: out of memory\n");
  } catch (...) {  // a bug
    usual_end()();
  }
  // Where GCC 12 has inlined a noexcept function, the exception is not known here.
  if (std::uncaught_exceptions() > 0) end_with("millrace: an error, probably out of memory\n");
  usual_end()();
}

// To its end; the exit code.
int run(const Configuration& configuration, std::string_view why_fewer) {
  const Options& options = configuration.options;
  LogWriter writer(options.log);
  Server server(configuration, writer);
  Log& log = server.log();
  for (const std::string& warning : configuration.warnings)
    log.warning("configuration warning", {{"why", warning}});
  if (!why_fewer.empty()) log.warning("fewer connections", {{"why", why_fewer}});
  compare_memory(options, log);
  log.info("listening", {{"websocket", text_of(server.websocket())},
                         {"zeromq", server.zeromq()},
                         {"workers", options.listen.workers},
                         {"workers_remote", server.workers_remote()},
                         {"admin", text_of(server.admin())}});
  const bool drained = server.run();
  // A signal that comes from here on does not change the exit code. The other threads that are left
  // block all signals.
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
  // A client that is gone is an error of its connection, not of the process, and a limit on the
  // size of files one of the log or of a worker's slabs. Until the service can reload, SIGHUP must
  // not kill. Ignoring SIGCHLD reaps orphans if this process is PID 1 of a container.
  (void)usual_end();
  std::set_terminate(end_process);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGHUP, SIGCHLD}) std::signal(number, SIG_IGN);
  const std::string why_fewer = fit_to_descriptors(configuration->options.limits.connections);
  try {
    console.exit_code = run(*configuration, why_fewer);
  } catch (const DeviceFailure& error) {
    // To start again may help where a device had no memory left, and does not where there is none.
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
  Command command = program.add("serve", "run the service");
  auto config = std::make_shared<std::string>();
  command.add("--config,FILE", config.get(), "TOML file; without it, working defaults on loopback");
  command.run([config, &console] { serve(*config, console); });
}

}  // namespace millrace
