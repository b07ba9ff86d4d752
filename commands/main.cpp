// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "commands/console/command_line.h"
#include "commands/console/commands.h"

namespace {

// A process inherits the blocked signals of its parent.
void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// If the parent process has closed one of the standard descriptors, the next socket would get its
// number, and lines of the log would be sent to a client. So /dev/null is opened instead, in the
// mode in which its use fails, as with a closed descriptor.
void fill_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) == -1)
      (void)!::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// If the output could not be written, the exit code is not 0, whatever the command returned.
int after_output(int exit_code) {
  errno = 0;
  if (std::cout.flush()) return exit_code;
  std::cerr << "millrace: cannot write to standard output: "
            << (errno != 0 ? std::strerror(errno) : "an earlier write failed") << "\n";
  return exit_code != 0 ? exit_code : 1;
}

std::size_t columns_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col > 0 ? size.ws_col : 80;  // a serial line does not know it
}

}  // namespace

int main(int argc, char** argv) {
  using namespace millrace;
  fill_standard_descriptors();
  unblock_signals();
  CommandLine program("Millrace: chunks, batches and state resets for streaming models",
                      MILLRACE_VERSION);
  Console console{.out = std::cout,
                  .err = std::cerr,
                  .terminal = ::isatty(STDERR_FILENO) == 1,
                  .columns = columns_of(STDOUT_FILENO)};
  add_serve_command(program, console);
  add_stream_command(program, console);
  add_tap_command(program, console);
  add_chunk_command(program, console);
  add_recordings_command(program, console);
  add_replay_command(program, console);
  add_index_command(program, console);
  add_plan_command(program, console);
  add_train_serve_command(program, console);
  add_bench_command(program, console);
  add_check_worker_command(program, console);
  add_check_config_command(program, console);
  add_healthcheck_command(program, console);
  add_token_command(program, console);
  program.run({argv + 1, argv + argc}, console);
  return after_output(console.exit_code);
}
