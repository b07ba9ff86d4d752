// SPDX-License-Identifier: Apache-2.0
// Measures the time of a row on a pipeline's home thread, by the number of attached workers. One
// worker has the only stream, the others are idle.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "bench/options.h"
#include "schemas/worker_codec.h"
#include "workers/hub/hub.h"

namespace {

using namespace millrace;
using namespace std::chrono_literals;
namespace wp = worker_protocol;

// The connection of a worker without slabs; keeps the id of its last batch.
class Link final : public WorkerConnection {
 public:
  void send(Bytes message, int) override {
    const auto decoded = decoder_.to_worker(message);
    if (const auto* batch = decoded ? std::get_if<wp::HandedBatch>(&*decoded) : nullptr)
      last = batch->id;
    welcomed = true;
  }
  std::size_t unsent() const override { return 0; }
  bool is_connected() const override { return true; }
  std::shared_ptr<PeerProcess> process(PeerProcesses&) override { return nullptr; }
  void end() override {}

  bool welcomed = false;
  BatchId last{};

 private:
  wp::Decoder decoder_{wp::max_to_worker};
};

HubSettings settings() {
  HubSettings settings;
  settings.pipeline = "default";
  settings.rule = {.batch = {.slots = 4, .rows = 4, .width_buckets = {160}},
                   .worker_wait = 1h,
                   .bye_wait = 1h,
                   .timeouts = {.silence = 1h, .answer = 1h, .first_answer = 1h}};
  settings.welcome = {.frames = {},
                      .shape = {.format = {}, .slots = 4, .rows = 4, .width = 160},
                      .chunk = R"({"size":160})",
                      .width_buckets = {160}};
  settings.streams = 8;
  settings.log = [](const WorkerEvent&) {};
  return settings;
}

// Microseconds per row, from its arrival to its answer.
double cost_of_row(std::size_t workers, std::uint64_t rows) {
  net::io_context io;
  Devices devices;
  Budget bytes{std::uint64_t{1} << 30};
  LaneStats stats;
  ReturnBox returns(io, 1000, [](std::vector<Returned>&) {});
  std::optional<SlabThreads> threads(std::in_place, 0);
  Hub hub(io, settings(), {devices, bytes, *threads}, stats);
  std::deque<Link> links;
  const net::executor_work_guard<Executor> work(io.get_executor());
  while (links.size() < workers) {
    hub.hello(links.emplace_back(), {.name = "w", .credits = 1});
    while (!links.back().welcomed) io.run_one();
  }
  Link& first = links.front();
  hub.open({.id = StreamId{1}, .name = "one", .options = "", .returns = &returns});
  const std::vector<std::int16_t> frames(160, 1);
  const Time began = Clock::now();
  for (std::uint64_t seq = 0; seq < rows; ++seq) {
    ReadyRow row;
    row.row.seq = seq;
    row.row.size = 160;
    row.notify_batched = false;  // as for a stream without a backlog
    row.window[0] = std::as_bytes(std::span(frames));
    hub.add(StreamId{1}, row);
    io.poll();
    hub.receive(first, wp::Done{first.last, {}, {}, {}, {}});
  }
  const Duration took = Clock::now() - began;
  hub.stop();
  threads.reset();
  return std::chrono::duration<double, std::micro>(took).count() / static_cast<double>(rows);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t rows = 100'000;
  bench::Options("Measure the cost of a row on the home thread, by number of workers")
      .add("--rows", rows, "Rows of each measurement")
      .parse(argc, argv);
  for (const std::size_t workers : {1, 10, 100, 300, 1000})
    std::printf("%5zu workers: %6.2f us a row\n", workers, cost_of_row(workers, rows));
}
