// SPDX-License-Identifier: Apache-2.0
// An io thread when memory is short, and when the service stops.
#include "service/pipelines/io_thread.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/file_descriptor.h"
#include "service/admin/live_lists.h"
#include "service/config/options.h"
#include "service/server/server.h"
#include "tests/support/temporary_directory.h"
#include "transport/net/listener.h"
#include "transport/sessions/millrace_v1/conversation.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

void listen_on_loopback(IoThread& thread, ClientGate& gate) {
  net::io_context* const contexts[] = {&thread.context()};
  thread.listen(std::move(listen_on({net::ip::address_v4::loopback(), 0}, contexts).front()),
                make_protocols({}, {}, thread.admission()), gate);
}

// An io thread with the streams of two clients. run() is not called: the test acts as the thread.
struct ThreadUnderTest {
  ThreadUnderTest() {
    const auto configuration = parse_options("[[pipeline]]\nchunk = { size = 4 }\n", "test.toml");
    pipelines.push_back(
        std::make_unique<Pipeline>(configuration->options.pipelines.front(), thread->context(),
                                   SlabSupply{devices, slab_bytes, slab_threads}, 10,
                                   PipelineCallbacks{.log = [](const WorkerEvent&) {}}));
    thread->set_pipelines(pipelines, admission, nullptr, 1);
    open("small", 20'000);
    open("large", 40'000);
  }
  void open(std::string name, std::size_t bytes) {
    outboxes.emplace_back(scope, ClientIdentity());
    auto opened = thread->admission().open({.id = std::move(name)}, {}, outboxes.back());
    REQUIRE(opened.has_value());
    const std::vector<std::byte> some(bytes);
    streams.push_back(std::move(*opened));
    streams.back()->frames(some, Clock::now());
  }
  void run() { thread->context().poll(); }
  bool ended(std::size_t client) { return outboxes[client].queue().closing().has_value(); }
  // The number of goaways queued for the clients.
  int goaways() {
    int count = 0;
    for (auto& outbox : outboxes)
      for (SessionQueue& queue = outbox.queue(); !queue.empty();) {
        count += queue.next().bytes.find("goaway") != std::string_view::npos;
        queue.sent();
      }
    return count;
  }
  // Disconnects the clients and returns the whole log. The last call.
  std::string logged() {
    streams.clear();
    writer.reset();
    std::ifstream lines(folder / "log");
    return {std::istreambuf_iterator<char>(lines), {}};
  }

  TemporaryDirectory folder;
  FileDescriptor file{::open((folder / "log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)};
  std::optional<LogWriter> writer{std::in_place, LogOptions{}, file.get()};
  Devices devices;
  Budget slab_bytes{1 << 20};
  ConnectionLimits limits;
  TransportStats stats;
  SharedAdmission admission{
      .names = {}, .connections = Budget(9), .gate = {.sockets = Budget(9)}, .name_prefix = "s-"};
  std::unique_ptr<IoThread> thread = std::make_unique<IoThread>(0, 10, limits, *writer);
  SessionScope scope{thread->context().get_executor(), limits, stats};
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  SlabThreads slab_threads{0};
  std::deque<MillraceV1Conversation> outboxes;
  std::vector<StreamHandle> streams;
};

// An io thread without clients, with its listeners.
struct Idle {
  Idle() {
    thread->set_pipelines({}, admission, nullptr, 1);
    listen_on_loopback(*thread, admission.gate);
    thread->listen_zeromq({.endpoint = "tcp://127.0.0.1:0"}, admission.gate);
  }

  LogWriter writer;
  SharedAdmission admission{
      .names = {}, .connections = Budget(9), .gate = {.sockets = Budget(9)}, .name_prefix = "s-"};
  std::unique_ptr<IoThread> thread = std::make_unique<IoThread>(0, 10, ConnectionLimits{}, writer);
};

}  // namespace

TEST_CASE("a drain ends when its cut-off has dropped the streams that workers still have") {
  ThreadUnderTest t;
  listen_on_loopback(*t.thread, t.admission.gate);
  bool drained = false;
  t.thread->drain(Clock::now(), [&] { drained = true; });
  t.run();
  CHECK_FALSE(drained);
  CHECK(t.thread->cut_off());
  t.run();
  CHECK(drained);
}

TEST_CASE("streams continue during a notice, and the drain continues when no stream is left") {
  ThreadUnderTest t;
  listen_on_loopback(*t.thread, t.admission.gate);
  bool drained = false;
  t.thread->drain(Clock::now() + 1h, [&] { drained = true; });
  t.run();
  CHECK(t.goaways() == 1);  // the other stream receives it half an hour later
  CHECK_FALSE(t.ended(0));
  CHECK_FALSE(t.ended(1));
  CHECK(t.thread->admission().open({}, {}, t.outboxes.front()).error().reason == Refusal::draining);
  t.streams.clear();
  t.run();
  CHECK(drained);
}

TEST_CASE("a cut-off ends the notice of a drain") {
  ThreadUnderTest t;
  listen_on_loopback(*t.thread, t.admission.gate);
  bool drained = false;
  t.thread->drain(Clock::now() + 1h, [&] { drained = true; });
  t.run();
  CHECK_FALSE(drained);
  CHECK(t.thread->cut_off());
  t.run();
  CHECK(drained);
}

TEST_CASE("a cut-off of a thread without clients cuts nothing") {
  const Idle idle;
  CHECK_FALSE(idle.thread->cut_off());
}

TEST_CASE("a thread that is stopped in the middle of its work leaves no coroutine behind") {
  const Idle idle;
  idle.thread->run();
  idle.thread->stop();  // the scope asserts that all coroutines have ended
}

TEST_CASE("the largest stream of the chosen thread is evicted, and the log names it") {
  ThreadUnderTest t;
  t.thread->apply_pressure(Overload::reset_largest, 0, false);
  t.run();
  CHECK(t.thread->largest_stream_bytes() >= 40'000);
  t.thread->apply_pressure(Overload::reset_largest, 0, true);
  t.run();
  CHECK(t.ended(1));
  CHECK_FALSE(t.ended(0));
  CHECK(t.thread->largest_stream_bytes() < 40'000);
  CHECK_THAT(t.logged(), Catch::Contains("stream evicted: memory is short") &&
                             Catch::Contains("stream=large bytes=40"));
}

TEST_CASE("if memory is short the messages of an ended stream that waits are dropped") {
  ThreadUnderTest t;
  t.outboxes.emplace_back(t.scope, ClientIdentity());
  auto opened = t.thread->admission().open({.id = "ended", .resume = true}, {}, t.outboxes.back());
  REQUIRE(opened.has_value());
  (*opened)->frames(std::vector<std::byte>(8), Clock::now());
  (*opened)->fail(ErrorCode::values, "", Clock::now());
  (*opened)->disconnected(ConnectionEnd::lost, Clock::now());
  const ResumableStreams& kept = t.thread->admission().resumables();
  t.thread->apply_pressure(Overload::close_idle, 0, false);
  t.run();
  CHECK(kept.oldest_over());
  t.thread->apply_pressure(Overload::reset_largest, 0, false);
  t.run();
  CHECK_FALSE(kept.oldest_over());
  opened->reset();
  CHECK_THAT(t.logged(), Catch::Contains("messages of an ended stream dropped") &&
                             Catch::Contains("stream=ended"));
}

TEST_CASE("a late thread still evicts its largest stream, once") {
  ThreadUnderTest t;
  t.thread->apply_pressure(Overload::reset_largest, 0, true);
  t.thread->apply_pressure(Overload::reset_largest, 0, false);
  t.run();
  t.thread->apply_pressure(Overload::reset_largest, 0, false);
  t.run();
  CHECK(t.ended(1));
  CHECK_FALSE(t.ended(0));
}

TEST_CASE("a late thread evicts no stream if the action has ended") {
  ThreadUnderTest t;
  t.thread->apply_pressure(Overload::reset_largest, 0, true);
  t.thread->apply_pressure(Overload::close_idle, 0, false);
  t.run();
  t.thread->apply_pressure(Overload::reset_largest, 0, false);
  t.run();
  CHECK_FALSE(t.ended(1));
}

TEST_CASE("while an io thread does not answer, requests for lists wait for it once a second") {
  ThreadUnderTest t;
  t.run();
  const Time now = Clock::now();
  std::vector<std::unique_ptr<IoThread>> threads;
  threads.push_back(std::move(t.thread));
  LiveLists lists(threads, {});
  CHECK(lists.streams("/streams", now).status == 503);
  CHECK(threads.front()->context().poll() > 0);
  for (const std::string target : {"/streams", "/streams?limit=1", "/streams?limit=2"})
    CHECK(lists.streams(target, now + 300ms).status == 503);
  CHECK(lists.workers(now + 300ms).status == 503);
  CHECK(threads.front()->context().poll() == 0);
  CHECK(lists.streams("/streams", now + 1h).status == 503);
  CHECK(threads.front()->context().poll() > 0);
  t.thread = std::move(threads.front());
}

TEST_CASE("at most 20 different lists of streams are collected in a second") {
  LiveLists lists({}, {});
  const Time now = Clock::now();
  for (int limit = 1; limit <= 20; ++limit)
    CHECK(lists.streams("/streams?limit=" + std::to_string(limit), now).status == 200);
  const HttpAnswer refused = lists.streams("/streams?limit=21", now);
  CHECK(refused.status == 503);
  CHECK(refused.fields == HttpFields{{"Retry-After", "1"}});
  CHECK(lists.streams("/streams?limit=20", now).status == 200);  // this list is cached
  CHECK(lists.streams("/streams?limit=22", now + 1s).status == 200);
}
