// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/host/shared_memory.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_protocol.h"
#include "workers/hub/hub.h"

namespace millrace::test {

using namespace std::chrono_literals;
using namespace worker_protocol;

// A worker's connection whose other end is the test: the messages of the hub are decoded and kept.
class Link final : public WorkerConnection {
 public:
  explicit Link(Executor executor) : executor_(executor) {}

  void send(Bytes message, int descriptor) override {
    if (ended) throw std::logic_error("the hub sends after the end");
    if (on_send) on_send();
    auto decoded = decoder_.to_worker(message);
    if (!decoded) throw std::logic_error("the hub sends what is no message");
    if (auto* welcome = std::get_if<Welcome>(&*decoded); welcome && descriptor != -1)
      slabs.emplace(SharedMemory::map(descriptor, welcome->slabs * welcome->slab_bytes));
    if (auto* batch = std::get_if<HandedBatch>(&*decoded))
      batch->tensor = tensors_.emplace_back(batch->tensor.begin(), batch->tensor.end());
    if (auto* company = std::get_if<Company>(&*decoded)) {
      others = company->workers;
      streams = {company->moved, company->waiting};
      ++companies;
    } else if (std::holds_alternative<Heartbeat>(*decoded))
      ++beats;
    else
      sent_.push_back(std::move(*decoded));
  }
  bool is_connected() const override { return !hung_up; }
  std::shared_ptr<PeerProcess> process(PeerProcesses&) override {
    if (is_remote) return nullptr;
    if (out_of_descriptors) throw std::system_error(EMFILE, std::generic_category(), "process");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("no socket");
    const FileDescriptor ours(ends[0]);
    alive_ = FileDescriptor(ends[1]);
    return std::make_shared<PeerProcess>(executor_, FileDescriptor(), ours.get());
  }
  // Its process has ended.
  void exit() { alive_ = FileDescriptor(); }

  std::size_t unsent() const override { return behind; }
  void end() override { ended = true; }

  // The next message, which must be of this type. Heartbeat and Company are not kept.
  template <class Message>
  Message receive() {
    if (sent_.empty()) throw std::runtime_error("the hub sent nothing more");
    ToWorker message = std::move(sent_.front());
    sent_.pop_front();
    if (auto* wanted = std::get_if<Message>(&message)) return std::move(*wanted);
    throw std::runtime_error("the hub sent something else");
  }
  bool idle() const { return sent_.empty(); }

  bool hung_up = false;
  bool is_remote = false;  // on another machine
  bool out_of_descriptors = false;
  bool ended = false;
  int beats = 0, companies = 0;
  std::function<void()> on_send;
  std::size_t behind = 0;                           // the result of unsent()
  std::optional<std::uint32_t> others;              // in the last Company
  std::pair<std::uint32_t, std::uint32_t> streams;  // there too: those that moved, and that wait
  std::optional<SharedMemory> slabs;

 private:
  Executor executor_;
  FileDescriptor alive_;
  Decoder decoder_{max_to_worker};
  std::deque<ToWorker> sent_;
  std::deque<std::vector<std::byte>> tensors_;
};

// A hub for s16 streams, with two slots per worker, and batches of up to four rows of four columns
// that do not wait. The test acts as its streams, its workers and its home thread.
class HubUnderTest {
 public:
  static constexpr LaneTimeouts long_timeouts{.silence = 1h, .answer = 1h, .first_answer = 1h};

  explicit HubUnderTest(LaneTimeouts timeouts = long_timeouts,
                        const DeviceRule& rule = {.use = DeviceRule::Use::host},
                        Element dtype = Element::s16)
      : returns_(io_, 1000,
                 [this](std::vector<Returned>& some) {
                   for (Returned& one : some) back.push_back(std::move(one));
                 }),
        devices(rule),
        hub(io_, settings(timeouts, dtype), {devices, slab_bytes, slab_threads}, stats),
        slab_threads(devices.usable().size()) {}

 private:
  boost::asio::io_context io_;
  ReturnBox returns_;
  std::deque<Link> links_;
  std::deque<std::array<std::int16_t, 3>> frames_;
  std::deque<StreamPosts> posts_;
  const StreamPosts* next_posts_ = nullptr;
  std::unordered_map<StreamId, std::uint64_t> seq_;

 public:
  HubSettings settings(LaneTimeouts timeouts = long_timeouts, Element dtype = Element::s16) {
    const BatchShape shape{.format = {.dtype = dtype}, .slots = 2, .rows = 4, .width = 4};
    return {.pipeline = "default",
            .rule = {.batch = {.slots = shape.slots, .rows = shape.rows, .width_buckets = {4}},
                     .worker_wait = 1h,
                     .bye_wait = 1h,
                     .timeouts = timeouts},
            .welcome = {.frames = {},
                        .shape = shape,
                        .chunk = R"({"size":3})",
                        .width_buckets = {4},
                        .row_buckets = {1, 4}},
            .streams = 8,
            .log =
                [this](const WorkerEvent& event) {
                  lines.emplace_back(event.what);
                  if (event.warning) warnings.emplace_back(event.what);
                  last_line = std::string(event.stream).append(": ").append(event.why);
                  if (event.streams) last_moved = *event.streams;
                },
            .device_lost =
                [this](std::size_t device, const DeviceLost& lost) {
                  lost_devices.push_back(std::to_string(device) + " " +
                                         std::string(name_of(lost.fault)));
                }};
  }

  Devices devices;
  Budget slab_bytes{std::uint64_t{1} << 20};
  LaneStats stats;
  std::vector<Returned> back;         // messages to the streams
  std::vector<std::string> lines;     // events of the log
  std::vector<std::string> warnings;  // events that are warnings
  std::string last_line;              // stream and reason of the last event
  MovedStreams last_moved;            // of the last lost worker
  std::vector<std::string> lost_devices;
  Hub hub;
  SlabThreads slab_threads;

  boost::asio::io_context& io() { return io_; }

  // Runs all work that is due.
  void run() {
    io_.restart();
    io_.poll();
  }
  // Runs until `happened` returns true. Throws after 30 s.
  void run_until(const auto& happened) {
    const Time guard = Clock::now() + 30s;
    while (!happened()) {
      if (Clock::now() > guard) throw std::runtime_error("it does not happen");
      io_.restart();
      io_.run_one_for(5ms);
    }
  }

  // Waits until all slabs on the host that were to be made or freed before now have been.
  void await_slabs() {
    std::promise<void> done;
    slab_threads.post(std::nullopt, [&] { done.set_value(); });
    done.get_future().wait();
    run();
  }

  Link& connect() { return links_.emplace_back(io_.get_executor()); }
  Link& connect(const Hello& hello) {
    Link& link = connect();
    hub.hello(link, hello);
    run_until([&] { return !link.idle(); });
    return link;
  }
  // A worker that has received Welcome.
  Link& attach(std::uint32_t credits = 2) {
    Link& link = connect({.name = "w", .credits = credits});
    (void)link.receive<Welcome>();
    return link;
  }
  Link& watch() {
    Link& link = connect({.name = "watcher", .watch = true});
    (void)link.receive<Welcome>();
    return link;
  }
  void done(Link& link, BatchId batch, std::vector<Answer> answers = {},
            std::vector<Answer> mark_answers = {}) {
    hub.receive(link, Done{.batch = batch,
                           .answers = std::move(answers),
                           .mark_answers = std::move(mark_answers),
                           .taken = {},
                           .done = {}});
    run();
  }

  // open() opens a stream. row() adds a row of three frames, with the values
  // 100 · stream + 10 · seq + 0 … 2. mark() adds a marker row.
  void open(std::uint64_t id, std::string name = "mic", std::string options = "") {
    (void)hub.stream_budget().try_take(1);
    hub.open({.id = StreamId{id},
              .name = std::move(name),
              .options = std::move(options),
              .returns = &returns_});
  }
  void row(std::uint64_t id, std::uint8_t flags = 0, bool notify_batched = true) {
    ReadyRow ready = next_row(id, flags);
    ready.notify_batched = notify_batched;
    const int first = static_cast<int>(100 * id + 10 * ready.row.seq);
    auto& frames = frames_.emplace_back();
    for (std::size_t i = 0; i < 3; ++i)
      frames[i] = static_cast<std::int16_t>(first + static_cast<int>(i));
    ready.row.size = 3;
    ready.posts = std::exchange(next_posts_, nullptr);
    ready.window[0] = std::as_bytes(std::span(frames));
    hub.add(StreamId{id}, ready);
    run();
  }
  void mark(std::uint64_t id, std::uint8_t flags) {
    ReadyRow ready = next_row(id, flags);
    ready.posts = std::exchange(next_posts_, nullptr);
    hub.add(StreamId{id}, ready);
    run();
  }

  // The next row carries this message of the client.
  void post(std::string data, bool set = false) {
    next_posts_ =
        &posts_.emplace_back(StreamPosts{{.position = 7, .text = std::move(data), .set = set}});
  }

  // The messages to the streams since the last call, such as "1 batched 1.0=yes",
  // or "1 at 0 text" for a message of a worker.
  std::string returned() {
    std::string text;
    for (const Returned& one : std::exchange(back, {})) {
      text += (text.empty() ? "" : " ") + std::to_string(number(one.stream));
      if (std::holds_alternative<RowBatched>(one.what)) text += " batched";
      if (std::holds_alternative<StreamDropped>(one.what)) text += " dropped";
      if (const auto* message = std::get_if<WorkerMessage>(&one.what))
        text += " at " + std::to_string(message->seq) + " " + message->message.data;
      if (const auto* done = std::get_if<RowDone>(&one.what))
        text += "." + std::to_string(done->seq) + "=" + done->answer.data;
    }
    return text;
  }

 private:
  ReadyRow next_row(std::uint64_t id, std::uint8_t flags) {
    ReadyRow ready;
    ready.row.seq = seq_[StreamId{id}]++;
    ready.row.flags = flags;
    if (ready.row.seq == 0) {
      ready.row.flags |= flag::start | flag::reset | flag::segment;
      ready.row.reason = ResetReason::start;
    }
    ready.arrived = ready.ready = Clock::now();
    return ready;
  }
};

// The rows of a batch as stream.seq, with an R after rows that carry RESET(worker_lost).
inline std::string rows_of(const HandedBatch& batch) {
  std::string text;
  for (const auto* rows : {&batch.framed, &batch.marks})
    for (const RowEntry& row : *rows)
      text += (text.empty() ? "" : " ") + std::to_string(number(row.stream)) + "." +
              std::to_string(row.seq) +
              (row.reason == static_cast<std::uint8_t>(ResetReason::worker_lost) ? "R" : "");
  return text;
}

// The tensor of a batch with this many rows.
inline std::vector<int> values(Bytes tensor, std::size_t rows) {
  std::vector<std::int16_t> all(rows * 4);
  std::memcpy(all.data(), tensor.data(), all.size() * 2);
  return {all.begin(), all.end()};
}

inline std::vector<Answer> texts(std::initializer_list<const char*> all) {
  std::vector<Answer> answers;
  for (const char* text : all) answers.push_back({Answer::Kind::text, text});
  return answers;
}

}  // namespace millrace::test
