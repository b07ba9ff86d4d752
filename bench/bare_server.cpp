// SPDX-License-Identifier: Apache-2.0
// Minimal servers for the traffic of `millrace bench`, to compare the service with: accept the
// streams of docs/protocol.md with any target, and drop or answer their messages. Print `listening
// ADDRESS`, and at SIGTERM a line of JSON with the number of messages and their latency
// (BareArrivals).
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "bench/bare_arrivals.h"
#include "bench/bare_beast.h"
#include "bench/bare_epoll.h"
#include "bench/options.h"

using namespace millrace;
using namespace millrace::bench;

namespace {

struct Arguments {
  std::string kind;
  bool answers = false;
  std::uint16_t port = 0;
  double warm_up = 1;            // s
  std::optional<double> length;  // s; by default until the end
};

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Must be called before the server waits for the signal.
void block_termination() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

template <class Server>
void serve(Server&& server, BareArrivals& arrivals) {
  std::printf("listening 127.0.0.1:%u\n", unsigned{server.port()});
  std::fflush(stdout);
  server.run();
  std::printf("%s\n", arrivals.json().c_str());
}

Duration seconds(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}

void run(const Arguments& arguments) {
  raise_descriptor_limit();
  BareArrivals arrivals(seconds(arguments.warm_up), seconds(arguments.length.value_or(1e6)));
  if (arguments.kind == "beast") return serve(BareBeast(arguments.port, arrivals), arrivals);
  block_termination();
  serve(BareEpoll(arguments.port, arguments.answers, arrivals), arrivals);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  Options options("A minimal server that receives the traffic of `millrace bench`");
  options.add("--kind", arguments.kind, "Implementation, required: beast or epoll")
      .flag("--answer", arguments.answers, "Answer each message with a result (epoll only)")
      .add("--port", arguments.port, "Port on loopback; 0: any free port")
      .add("--warm-up", arguments.warm_up,
           "Seconds before measuring starts, from the first message on")
      .add("--duration", arguments.length, "Measured seconds after that; default: until the end")
      .parse(argc, argv);
  options.require(arguments.kind == "beast" || arguments.kind == "epoll", "--kind: beast or epoll");
  try {
    if (arguments.answers && arguments.kind == "beast")
      throw std::invalid_argument("--answer needs --kind epoll");
    run(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_server: %s\n", error.what());
    return 1;
  }
}
