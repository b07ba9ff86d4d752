// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/config/options.h"
#include "service/pipelines/thread_admission.h"
#include "tests/service/log/logged.h"
#include "tests/support/bytes.h"
#include "tests/support/patience.h"
#include "tests/workers/hub/hub_fixture.h"
#include "transport/sessions/millrace_v1/conversation.h"

namespace millrace {

// The admission of an audio pipeline with two slots, and of a pipeline of features. The test acts
// as the clients, the worker and both threads.
class AdmissionUnderTest {
 public:
  // With `recording`, the streams of the first pipeline are recorded. With `only`, there is only
  // the pipeline of features.
  explicit AdmissionUnderTest(std::uint64_t connections = 3, bool explain = false,
                              ThreadRecording* recording = nullptr, bool only = false)
      : shared{.names = {},
               .connections = Budget(connections),
               .gate = {.sockets = Budget(9)},
               .name_prefix = "s-",
               .explain = explain} {
    const std::string record =
        recording
            ? "[recording]\ndirectory = \"/recordings\"\n[[pipeline]]\nrecord = { answers = true }"
            : "[[pipeline]]";
    const auto configuration = parse_options(record + R"(
slots = 2
chunk = { size = 4 }
batch = { max_wait = "0s" }
[[pipeline]]
name = "features"
dim = 3
)",
                                             "test.toml");
    for (const PipelineOptions& options : configuration->options.pipelines)
      if (!only || options.name == "features")
        pipelines.push_back(std::make_unique<Pipeline>(
            options, io, SlabSupply{devices, slab_bytes, slab_threads}, connections + 7,
            PipelineCallbacks{.log = [](const WorkerEvent&) {}}));
    admission.emplace(pipelines,
                      ThreadAdmission::Thread{shared, returns, *logged.log, 0, 1, recording});
  }

  struct Client {
    explicit Client(SessionScope& scope) : outbox(scope, {}) {}
    // Reads the queued messages, and those that follow when they are written.
    std::vector<std::string> received() {
      std::vector<std::string> messages;
      SessionQueue& queue = outbox.queue();
      while (!queue.empty()) {
        const auto message = queue.next();
        const bool is_result = message.results > 0;
        messages.emplace_back(message.bytes);
        queue.sent();
        if (stream) stream->written(is_result ? 1 : 0, Clock::now());
      }
      return messages;
    }
    MillraceV1Conversation outbox;
    StreamHandle stream;
    std::optional<RequestError> error;
  };

  Client& open(StreamRequest request = {}, const ClientIdentity& identity = {}) {
    Client& client = clients.emplace_back(scope);
    auto opened = admission->open(std::move(request), identity, client.outbox);
    if (opened)
      client.stream = std::move(*opened);
    else
      client.error = opened.error();
    return client;
  }
  static void disconnect(Client& client) {
    client.stream->disconnected(ConnectionEnd::lost, Clock::now());
    client.stream.reset();
  }
  void run() {
    io.restart();
    io.poll();
  }
  void send_row(Client& client) {
    const std::array<std::int16_t, 4> frames{1, 2, 3, 4};
    client.stream->frames(test::bytes_of(std::span<const std::int16_t>(frames)), Clock::now());
    run();
  }
  test::Link& attach() {
    test::Link& worker = workers.emplace_back(io.get_executor());
    hub().hello(worker, {.name = "w"});
    const Time guard = Clock::now() + patience;
    while (worker.idle() && Clock::now() < guard) {  // another thread makes its slabs
      io.restart();
      io.run_one_for(std::chrono::milliseconds(5));
    }
    (void)worker.receive<worker_protocol::Welcome>();
    return worker;
  }
  // Answers the worker's next batch.
  void answer(test::Link& worker, std::vector<Answer> answers = {}) {
    const auto batch = worker.receive<worker_protocol::HandedBatch>();
    hub().receive(worker, worker_protocol::Done{.batch = batch.id,
                                                .answers = std::move(answers),
                                                .mark_answers = {},
                                                .taken = {},
                                                .done = {}});
    run();
  }
  // Disconnects the clients and returns the whole log. The last call.
  std::string log() {
    clients.clear();
    return logged.text();
  }
  Hub& hub() { return pipelines.front()->hub(); }
  const StreamStats& stats() const { return admission->stats(0); }
  std::size_t live() {
    std::size_t streams = 0;
    admission->table().each([&](const Stream&) { ++streams; });
    return streams;
  }

  net::io_context io{1};
  Devices devices;
  Budget slab_bytes{1 << 20};
  ConnectionLimits limits;
  TransportStats transport_stats;
  SessionScope scope{io.get_executor(), limits, transport_stats};
  SharedAdmission shared;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  test::Logged logged;
  SlabThreads slab_threads{0};
  ReturnBox returns{io, 1000,
                    [this](std::vector<Returned>& some) { admission->table().deliver(some); }};
  std::optional<ThreadAdmission> admission;
  std::deque<Client> clients;
  std::deque<test::Link> workers;
};

}  // namespace millrace
