// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/frame_type.h"
#include "load/streams/outcome.h"
#include "load/streams/plan.h"
#include "load/streams/schedule.h"
#include "load/streams/sent_audio.h"
#include "load/streams/usage.h"
#include "schemas/stream_request.h"

namespace millrace::load {

// The protocol of the clients; the names are those of --speak.
enum class Spoken : std::uint8_t { millrace, openai, deepgram };

// The service that a load runs against, and the content of the load.
struct LoadTarget {
  // Or wss://HOST:PORT, tcp://HOST:PORT. The other protocols have no tcp://, and may have a path.
  std::string url = "ws://127.0.0.1:8080";
  Spoken spoken = Spoken::millrace;
  std::string model = {};  // that the clients of the other protocols name
  ServiceAccess access = {};
  std::string pipeline = "default";
  bool resume = false;       // streams survive their connections; millrace over WebSocket only
  std::string options = {};  // options of every stream: a JSON object, or empty
  // The type of the pipeline's frames. An own worker receives the type from the service instead.
  FrameType type = {};
  std::optional<SampleFormat> format = {};  // the clients'; nullopt: s16le, for features f32le
  std::optional<double> rate = {};          // the clients' rate; nullopt: the pipeline's
  enum class OwnWorker : std::uint8_t { none, silent, answering } worker = OwnWorker::none;
  std::uint32_t messages = 0;          // that the own worker sends to a client for each of its rows
  std::string workers = {};            // the address to which it attaches, as Worker's url
  std::string worker_device = "host";  // the device of its batches, as in WorkerSettings
  // Frames of s16 to send, with `rate` and these channels; empty: noise.
  std::vector<std::byte> content = {};
  std::uint32_t content_channels = 0;
  unsigned threads = 1;              // number of threads for the clients
  std::optional<pid_t> server = {};  // the service's process on this machine, to measure it
};

// Totals until an instant: CPU time used and work done.
struct Sample {
  Duration clients{}, worker{};         // CPU time of the generator's threads
  std::optional<Usage> server{};        // nullopt if it is not measured, or has ended
  std::uint64_t packets = 0, rows = 0;  // packets sent, rows returned by the own worker
};

// The outcome of a load. Refers to its schedule, which must outlive it.
struct LoadReport {
  LoadPlan plan = {};
  bool answered = false;  // the own worker answers: each row must have a result
  Spoken spoken = Spoken::millrace;
  ClientOutcome clients;
  std::optional<WorkerOutcome> worker = {};
  std::string worker_device = {};    // host, or cuda:N; empty without an own worker
  Sample before = {};                // before the first stream was open
  Sample idle = {};                  // all streams open, nothing sent
  std::vector<Sample> counted = {};  // at the start of the measured time, and after each window
};

// Runs a load: attaches the worker, opens the streams, sends according to the schedule, ends the
// streams, and waits until they are closed. `schedule` must not be started. Throws
// std::runtime_error, and WorkerError if the own worker cannot reach the service.
LoadReport run_load(Schedule& schedule, const LoadTarget& target);

}  // namespace millrace::load
