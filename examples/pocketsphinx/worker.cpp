// SPDX-License-Identifier: Apache-2.0
// A worker that decodes English speech with CMU PocketSphinx. At SIGTERM it sends Bye to the
// service: its streams move to other workers, or stay until they end if there is no other worker.
// A second SIGTERM ends it at once.
#include "workers/library/worker.h"

#include <pthread.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "examples/pocketsphinx/batch_decoder.h"
#include "examples/pocketsphinx/body_columns.h"

namespace {

using namespace millrace;
using namespace millrace::pocketsphinx;

struct Options {
  std::string url, pipeline = "default", model = default_model;
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::size_t warm = 4;
};

// Calls bye() at the first SIGTERM or SIGINT, and interrupt() at the second, which ends the worker.
// The signals must be blocked in every thread.
class Goodbye {
 public:
  Goodbye(Worker& worker, const sigset_t& signals)
      : thread_([this, &worker, signals] {
          if (wait(signals)) worker.bye();
          if (wait(signals)) worker.interrupt();
        }) {}
  ~Goodbye() {
    over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
  }

 private:
  bool wait(const sigset_t& signals) const {
    int signal = 0;
    return !over_ && sigwait(&signals, &signal) == 0 && !over_;
  }

  std::atomic<bool> over_{false};
  std::jthread thread_;
};

sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int work(const Options& options) {
  const sigset_t signals = block_signals();
  ThreadTeam team(options.threads);
  BatchDecoder decoder(options.model, team);
  decoder.warm(options.warm);

  const auto stop_if_asked = [] {
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT))
      throw std::runtime_error("stopped by a signal before it was attached");
  };
  Worker worker(options.url, {.pipeline = options.pipeline, .name = "pocketsphinx"}, stop_if_asked);
  const auto columns = body_columns(worker.frames(), worker.chunk());
  if (!columns) throw std::runtime_error("pipeline " + options.pipeline + ": " + columns.error());
  std::cout << "attached to " << options.pipeline << ": " << worker.slots() << " slots, "
            << team.size() << " threads" << std::endl;

  const Goodbye goodbye(worker, signals);
  while (auto batch = worker.next()) {
    const auto& answers = decoder.decode(*batch, *columns);
    worker.done(*batch, answers.framed, answers.marks);
  }
  return worker.ended() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("Decodes the streams of a pipeline (mono, 16 kHz, dtype s16) with PocketSphinx.");
  app.add_option(
      "--url", options.url,
      "socket of the service, unix:PATH (default: $MILLRACE_WORKERS, else the user's socket)");
  app.add_option("--pipeline", options.pipeline, "pipeline to work for")->capture_default_str();
  app.add_option("--model", options.model, "folder of the model")->capture_default_str();
  app.add_option("--threads", options.threads, "decoding threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--warm", options.warm, "decoders loaded before the worker attaches (90 MB each)")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return work(options);
} catch (const std::exception& error) {
  std::cerr << "pocketsphinx_worker: " << error.what() << '\n';
  return 1;
}
