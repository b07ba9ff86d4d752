// SPDX-License-Identifier: Apache-2.0
// Random rows in random batches, from a hub in another process to the worker library: on the host,
// over TCP, and on each CUDA device of the machine or of the simulation.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/row_columns.h"
#include "gpu/cuda/devices.h"
#include "tests/gpu/cuda/consumer.h"
#include "tests/gpu/host/row_reference.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"
#include "tests/workers/library/child.h"
#include "transport/net/net.h"
#include "transport/net/spawn.h"
#include "workers/hub/hub.h"
#include "workers/hub/server.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// A pipeline and the rows of its streams. All of it follows from the seed, so the processes of the
// service and of the worker agree.
class RandomPipeline {
 public:
  static constexpr std::uint64_t streams = 6, rows = 12;  // streams, and rows of each

  explicit RandomPipeline(unsigned seed) : seed_(seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](std::uint32_t most) {
      return static_cast<std::uint32_t>(random() % (most + 1));
    };
    const auto [frames, dtype] = conversions[up_to(std::size(conversions) - 1)];
    format = {.frames = frames,
              .dtype = dtype,
              .values = 1 + up_to(2),
              .context = up_to(1) * (1 + up_to(8)),
              .repeat = up_to(1) == 1};
    std::set<std::uint32_t> all;
    for (std::uint32_t i = 1 + up_to(3); i > 0; --i) all.insert(format.context + 6 + up_to(80));
    widths.assign(all.begin(), all.end());
    batch_rows = 1 + up_to(3);
  }

  struct Entry {
    Row row;
    std::vector<std::byte> frames;
  };
  // One in five rows is a marker row. Most rows fit into the narrowest width.
  Entry entry(std::uint64_t stream, std::uint64_t seq) const {
    std::mt19937 random(static_cast<unsigned>(seed_ * 10'000 + stream * 100 + seq));
    const auto up_to = [&](std::uint32_t most) {
      return static_cast<std::uint32_t>(random() % (most + 1));
    };
    Entry entry;
    Row& row = entry.row;
    row.seq = seq;
    row.begin = 1000 + 100 * seq;
    if (seq == 0) row.flags = flag::start | flag::reset | flag::segment;
    if (seq == 0) row.reason = ResetReason::start;
    if (seq + 1 == rows) row.flags |= flag::last | flag::end;
    if (up_to(4) == 0) return entry;
    const std::uint32_t width = up_to(3) > 0
                                    ? widths.front()
                                    : widths[up_to(static_cast<std::uint32_t>(widths.size() - 1))];
    row.left = up_to(format.context == 0 ? 3 : format.context);
    const std::uint32_t rest = width - std::max(format.context, row.left);
    row.size = 1 + up_to(rest - 1);
    row.right = up_to(rest - row.size);
    entry.frames = random_values(random, format.frames, std::size_t{row.window()} * format.values);
    return entry;
  }

  RowFormat format;
  std::vector<std::uint32_t> widths;
  std::uint32_t batch_rows = 1;

 private:
  unsigned seed_;
};

HubSettings settings_of(const RandomPipeline& pipeline) {
  constexpr auto slots = static_cast<std::uint32_t>(RandomPipeline::streams);
  const BatchShape shape{.format = pipeline.format,
                         .slots = slots,
                         .rows = pipeline.batch_rows,
                         .width = pipeline.widths.back()};
  return {
      .pipeline = "default",
      .rule = {.batch = {.slots = slots,
                         .rows = pipeline.batch_rows,
                         .width_buckets = pipeline.widths,
                         .columns = {pipeline.format.context}},
               .worker_wait = 1h,
               .bye_wait = 1h,
               .timeouts = {.silence = 1h, .answer = 1h, .first_answer = 1h}},
      .welcome = {.frames = {.element = pipeline.format.frames, .values = pipeline.format.values},
                  .shape = shape,
                  .chunk = "{}",
                  .width_buckets = pipeline.widths},
      .streams = RandomPipeline::streams,
      .tail_rows = RandomPipeline::rows,
      .log = [](const WorkerEvent&) {}};
}

// The service, in a process of its own: workers attach to a socket, or over TCP.
class ServiceProcess {
 public:
  explicit ServiceProcess(const RandomPipeline& pipeline)
      : pipeline_(pipeline), process_([this] { serve(); }) {
    if (::read(port_[0].get(), &tcp_port_, sizeof tcp_port_) != sizeof tcp_port_)
      throw std::runtime_error("no port");
  }
  std::string unix_url() const { return "unix:" + path_; }
  std::string tcp_url() const { return "tcp://127.0.0.1:" + std::to_string(tcp_port_); }

 private:
  void serve() const {
    net::io_context io;
    Devices devices({.use = DeviceRule::Use::automatic});
    Budget slab_bytes(std::uint64_t{64} << 20);
    SlabThreads slab_threads(devices.usable().size());
    LaneStats stats;
    ReturnBox returns(io, 1000, [](std::vector<Returned>&) {});
    Hub hub(io, settings_of(pipeline_), {devices, slab_bytes, slab_threads}, stats);
    WorkerServerSettings settings;
    settings.find = [&](std::string_view) { return PipelineHost{&hub, &io}; };
    settings.log = [](const WorkerEvent&) {};
    settings.hello_timeout = 1h;
    RemoteBudgets budgets{std::uint64_t{1} << 20};
    WorkerServer local(io.get_executor(), path_, settings);
    WorkerServer tcp(io.get_executor(), {net::ip::address_v4::loopback(), 0}, settings, budgets);
    spawn(io.get_executor(), local.serve());
    spawn(io.get_executor(), tcp.serve());
    std::vector<RandomPipeline::Entry> entries;
    entries.reserve(RandomPipeline::streams * RandomPipeline::rows);
    for (std::uint64_t stream = 0; stream < RandomPipeline::streams; ++stream) {
      (void)hub.stream_budget().try_take(1);
      hub.open({.id = StreamId{stream}, .name = "mic", .options = "", .returns = &returns});
    }
    for (std::uint64_t seq = 0; seq < RandomPipeline::rows; ++seq)
      for (std::uint64_t stream = 0; stream < RandomPipeline::streams; ++stream) {
        const auto& entry = entries.emplace_back(pipeline_.entry(stream, seq));
        ReadyRow ready;
        ready.row = entry.row;
        ready.window = {Bytes(entry.frames)};
        ready.arrived = ready.ready = Clock::now();
        hub.add(StreamId{stream}, ready);
      }
    const std::uint16_t port = tcp.port();
    [[maybe_unused]] const auto written = ::write(port_[1].get(), &port, sizeof port);
    io.run();
  }

  static std::array<FileDescriptor, 2> pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }

  const RandomPipeline& pipeline_;
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "workers.sock";
  const std::array<FileDescriptor, 2> port_ = pipe();
  std::uint16_t tcp_port_ = 0;
  Child process_;
};

// Takes the batches of a pipeline and compares them with its rows.
class Checker {
 public:
  Checker(const RandomPipeline& pipeline, const std::string& url, const std::string& device)
      : pipeline_(pipeline), worker_(url, {.device = device}), consumer_(consumer_on(device)) {}

  // Checks all rows of all streams. Returns the widths of the batches.
  std::set<std::uint32_t> run() {
    REQUIRE(worker_.width_buckets() == pipeline_.widths);
    REQUIRE(worker_.width() == pipeline_.widths.back());
    while (rows_ < RandomPipeline::streams * RandomPipeline::rows) {
      auto batch = worker_.next_until(Clock::now() + patience);
      REQUIRE(batch);
      check(*batch);
      worker_.done(*batch);
    }
    for (const auto& [stream, seq] : next_) CHECK(seq == RandomPipeline::rows);
    return seen_;
  }

 private:
  void check(const WorkerBatch& batch) {
    worker_.use_on(batch, consumer_->stream());
    std::uint32_t widest = 0;
    std::vector<RandomPipeline::Entry> entries;
    for (const auto* rows : {&batch.framed(), &batch.marks()})
      for (const auto& row : *rows) {
        CHECK(row.seq == next_[row.stream]++);
        const auto entry = pipeline_.entry(number(row.stream), row.seq);
        const Row& sent = entry.row;
        CHECK((row.left == sent.left && row.size == sent.size && row.right == sent.right));
        if (rows == &batch.framed())
          widest =
              std::max(widest, std::max(pipeline_.format.context, row.left) + row.size + row.right);
        entries.push_back(entry);
        ++rows_;
      }
    std::size_t bucket = 0;
    while (pipeline_.widths[bucket] < widest) ++bucket;
    CHECK(batch.width() == pipeline_.widths[bucket]);
    CHECK(batch.rows() == batch.framed().size());
    if (batch.rows() > 0) seen_.insert(batch.width());
    check_tensor(batch, entries);
    check_arrays(batch);
  }

  void check_tensor(const WorkerBatch& batch, const std::vector<RandomPipeline::Entry>& entries) {
    std::vector<std::byte> wanted;
    for (std::size_t i = 0; i < batch.framed().size(); ++i) {
      const auto row = row_by_definition(pipeline_.format, batch.width(), entries[i].frames,
                                         entries[i].row.left);
      wanted.insert(wanted.end(), row.begin(), row.end());
    }
    const std::byte* tensor = batch.device() ? batch.device()->tensor : batch.data().data();
    CHECK(fetch(batch, tensor, wanted.size()) == wanted);
    if (!batch.device()) CHECK(batch.data().size() == wanted.size());
  }

  // The arrays on the device, or those of the host again.
  void check_arrays(const WorkerBatch& batch) {
    std::vector<std::byte> slot, left, size, right, flags, reset;
    for (const auto* rows : {&batch.framed(), &batch.marks()})
      for (const auto& row : *rows) {
        put(slot, row.slot);
        put(left, row.left);
        put(size, row.size);
        put(right, row.right);
        flags.push_back(std::byte{row.flags});
        reset.push_back(std::byte{(row.flags & flag::reset) != 0});
      }
    const DeviceArrays* at = batch.device();
    const auto holds = [&](const void* array, const std::vector<std::byte>& wanted) {
      return fetch(batch, array, wanted.size()) == wanted;
    };
    CHECK(holds(at ? at->slot : batch.slot().data(), slot));
    CHECK(holds(at ? at->left : batch.left().data(), left));
    CHECK(holds(at ? at->size : batch.size().data(), size));
    CHECK(holds(at ? at->right : batch.right().data(), right));
    CHECK(holds(at ? at->flags : batch.flags().data(), flags));
    CHECK(holds(at ? at->reset : batch.reset().data(), reset));
  }

  static void put(std::vector<std::byte>& to, std::uint32_t value) {
    const Bytes bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> fetch(const WorkerBatch& batch, const void* from, std::size_t bytes) {
    if (batch.device()) return test::fetch(*consumer_, from, bytes);
    const auto* first = static_cast<const std::byte*>(from);
    return {first, first + bytes};
  }

  const RandomPipeline& pipeline_;
  Worker worker_;
  std::unique_ptr<cuda::Fetcher> consumer_;
  std::map<StreamId, std::uint64_t> next_;
  std::uint64_t rows_ = 0;
  std::set<std::uint32_t> seen_;
};

std::vector<std::string> all_devices() {
  std::vector<std::string> names{"host"};
  for (const cuda::FoundDevice& device : cuda::find_devices().devices) names.push_back(device.name);
  return names;
}

}  // namespace

TEST_CASE("a worker receives every row in the narrowest width, with the values of the contract") {
  const bool tcp = GENERATE(false, true);
  const std::string device = GENERATE(from_range(all_devices()));
  int wider = 0;  // pipelines with batches of several widths
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(tcp, device, seed);
    const RandomPipeline pipeline(seed);
    const ServiceProcess service(pipeline);
    Checker checker(pipeline, tcp ? service.tcp_url() : service.unix_url(), device);
    if (checker.run().size() > 1) ++wider;
  }
  CHECK(wider > 5);
}
