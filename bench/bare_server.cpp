// SPDX-License-Identifier: Apache-2.0
// The least that could receive the traffic of `millrace bench`, to compare the service with: takes
// the streams of docs/protocol.md, whatever their target, and drops or answers what they send.
// Says `listening ADDRESS` when it does, and at SIGTERM what came and how late, as a line of JSON.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "bench/bare_arrivals.h"
#include "bench/bare_beast.h"
#include "bench/bare_epoll.h"

using namespace millrace;
using namespace millrace::bench;

namespace {

struct Arguments {
  std::string kind;
  bool answers = false;
  std::uint16_t port = 0;
  double warm_up = 1, length = 1e6;  // s
};

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Before anybody waits for it.
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
  BareArrivals arrivals(seconds(arguments.warm_up), seconds(arguments.length));
  if (arguments.kind == "beast") return serve(BareBeast(arguments.port, arrivals), arrivals);
  block_termination();
  serve(BareEpoll(arguments.port, arguments.answers, arrivals), arrivals);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("The least that could receive the traffic of `millrace bench`");
  app.add_option("--kind", arguments.kind, "What it is made of: beast, epoll")
      ->required()
      ->check(CLI::IsMember({"beast", "epoll"}));
  app.add_flag("--answer", arguments.answers, "A result for each message (epoll)");
  app.add_option("--port", arguments.port, "Of loopback; 0: a free one");
  app.add_option("--warm-up", arguments.warm_up, "s that do not count, from the first message on")
      ->capture_default_str();
  app.add_option("--duration", arguments.length, "s that count behind it; all unless said");
  CLI11_PARSE(app, argc, argv);
  try {
    if (arguments.answers && arguments.kind == "beast")
      throw std::invalid_argument("only epoll answers");
    run(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_server: %s\n", error.what());
    return 1;
  }
}
