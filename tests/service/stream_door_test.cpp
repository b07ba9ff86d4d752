// SPDX-License-Identifier: Apache-2.0
// Who gets a stream, and what a stream takes with it when it goes.
#include "service/stream_door.h"

#include <catch2/catch.hpp>
#include <deque>

#include "service/options.h"
#include "tests/support/bytes.h"
#include "tests/workers/hub_fixture.h"
#include "transport/session_outbox.h"

using namespace millrace;
using test::Link;

namespace {

// A door to a pipeline of audio with two slots, and one of features. The test is the clients, the
// worker and both threads.
class DoorUnderTest {
 public:
  explicit DoorUnderTest(std::uint64_t connections = 3)
      : admission{.names = {},
                  .connections = Budget(connections),
                  .sockets = Budget(9),
                  .made_up = "s-"} {
    const auto configuration = parse_options(R"([[pipeline]]
slots = 2
chunk = { size = 4 }
batch = { max_wait = "0s" }
[[pipeline]]
name = "features"
dim = 3
)",
                                             "test.toml");
    for (const PipelineOptions& options : configuration->options.pipelines)
      pipelines.push_back(
          std::make_unique<Pipeline>(options, io, slab_bytes, 10, [](const WorkerEvent&) {}));
    door.emplace(pipelines, admission, returns, 0, 1);
  }

  struct Client {
    explicit Client(SessionScope& scope) : outbox(scope) {}
    // Each message so far.
    std::vector<std::string> told() {
      MessageBatch batch;
      outbox.take(batch);
      std::vector<std::string> messages;
      for (std::size_t i = 0; i < batch.size(); ++i) messages.emplace_back(batch[i].bytes);
      return messages;
    }
    SessionOutbox outbox;
    std::unique_ptr<StreamSink> sink;
    std::optional<RequestError> error;
  };

  Client& open(StreamRequest request = {}) {
    Client& client = clients.emplace_back(scope);
    auto opened = door->open(std::move(request), client.outbox);
    if (opened)
      client.sink = std::move(*opened);
    else
      client.error = opened.error();
    return client;
  }
  static void hang_up(Client& client) {
    client.sink->lost(false, Clock::now());
    client.sink.reset();
  }
  void run() {
    io.restart();
    io.poll();
  }
  void send_row(Client& client) {
    const std::array<std::int16_t, 4> frames{1, 2, 3, 4};
    client.sink->frames(test::bytes_of(std::span<const std::int16_t>(frames)), Clock::now());
    run();
  }
  Link& attach() {
    Link& worker = workers.emplace_back(io.get_executor());
    hub().hello(worker, {.name = "w"});
    (void)worker.take<worker_protocol::Welcome>();
    return worker;
  }
  // The next batch is done.
  void answer(Link& worker, std::vector<Answer> answers = {}) {
    const auto batch = worker.take<worker_protocol::HandedBatch>();
    hub().receive(worker, worker_protocol::Done{.batch = batch.id,
                                                .answers = std::move(answers),
                                                .mark_answers = {},
                                                .taken = {},
                                                .done = {}});
    run();
  }
  Hub& hub() { return pipelines.front()->hub(); }
  const StreamStats& stats() const { return door->stats(0); }
  std::size_t live() {
    std::size_t streams = 0;
    door->table().each([&](const LiveStream&) { ++streams; });
    return streams;
  }

  net::io_context io{1};
  Budget slab_bytes{1 << 20};
  ConnectionLimits limits;
  DoorStats door_stats;
  SessionScope scope{io.get_executor(), limits, door_stats};
  Admission admission;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  ReturnBox returns{io, 1000, [this](std::vector<Returned>& some) { door->table().take(some); }};
  std::optional<StreamDoor> door;
  std::deque<Client> clients;
  std::deque<Link> workers;
};

// Status, parameter.
using Refused = std::pair<unsigned, std::string>;

Refused refusal(DoorUnderTest& d, StreamRequest request) {
  const auto& error = d.open(std::move(request)).error;
  return error ? Refused(error->status, error->parameter) : Refused(101, "");
}

}  // namespace

TEST_CASE("what the pipeline does not take is refused by the parameter's name") {
  DoorUnderTest d;
  CHECK(refusal(d, {.pipeline = "other"}) == Refused(404, "pipeline"));
  CHECK(refusal(d, {.format = "opus"}) == Refused(415, "format"));
  CHECK(refusal(d, {.rate = 8000}) == Refused(415, "rate"));
  CHECK(refusal(d, {.channels = 2}) == Refused(415, "channels"));
  CHECK(refusal(d, {.dim = 3}) == Refused(415, "dim"));
  CHECK(refusal(d, {.channel = "0"}) == Refused(400, "channel"));
  CHECK(refusal(d, {.chunk = "x"}) == Refused(400, "chunk"));
  CHECK(refusal(d, {.pipeline = "features", .channels = 1}) == Refused(415, "channels"));
  CHECK(refusal(d, {.pipeline = "features", .dim = 4}) == Refused(415, "dim"));
  CHECK(d.admission.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.live() == 0);
}

TEST_CASE("what the pipeline takes may be said") {
  DoorUnderTest d;
  CHECK(d.open({.format = "f32le", .rate = 16000, .channels = 1}).sink);
  CHECK(d.open({.pipeline = "features", .rate = 100, .dim = 3}).sink);
}

TEST_CASE("a stream that opens is told its name first, and where to send from") {
  DoorUnderTest d;
  CHECK(d.open({.id = "mic"}).told() ==
        std::vector<std::string>{
            R"({"type":"ready","stream":"mic","pipeline":"default","frames":0})"});
  CHECK_THAT(d.open().told().front(), Catch::Contains(R"("stream":"s-)"));
}

TEST_CASE("a name is its connection's until that is gone, whatever becomes of the stream") {
  DoorUnderTest d;
  auto& first = d.open({.id = "mic"});
  CHECK(refusal(d, {.id = "mic"}) == Refused(409, "id"));
  CHECK(d.admission.connections.taken() == 1);
  CHECK(d.hub().room().taken() == 1);
  DoorUnderTest::hang_up(first);
  CHECK(d.open({.id = "mic"}).sink);
}

TEST_CASE("a made-up name never is one that a client has") {
  DoorUnderTest d;
  REQUIRE(d.open({.id = "s-2"}).sink);
  CHECK_THAT(d.open().told().front(), Catch::Contains(R"("stream":"s-2x")"));
}

TEST_CASE("who finds no room is refused, gets nothing, and may come again") {
  DoorUnderTest d;
  auto& first = d.open();
  REQUIRE(d.open().sink);
  const auto& refused = d.open({.id = "late"}).error;
  CHECK(refused->status == 503);
  CHECK(refused->reason == Refusal::no_room);
  CHECK(refused->retry_after.has_value());
  CHECK(d.admission.connections.taken() == 2);
  // No worker had a row of it: its room is free when the lanes have heard of it.
  DoorUnderTest::hang_up(first);
  d.run();
  CHECK(d.open({.id = "late"}).sink);
}

TEST_CASE("the process has so many connections, whatever their pipelines") {
  DoorUnderTest d(2);
  REQUIRE(d.open().sink);
  auto& second = d.open({.pipeline = "features"});
  CHECK(d.open().error->reason == Refusal::limit_global);
  CHECK(d.hub().room().taken() == 1);
  DoorUnderTest::hang_up(second);
  d.run();
  CHECK(d.open().sink);
}

TEST_CASE("a shut door refuses everybody") {
  DoorUnderTest d;
  d.door->shut();
  const auto& error = d.open().error;
  CHECK(error->status == 503);
  CHECK(error->reason == Refusal::draining);
}

TEST_CASE("while memory is short nobody gets a stream, and who has one keeps it") {
  DoorUnderTest d;
  auto& first = d.open();
  d.admission.overload = Overload::reject_streams;
  const auto& error = d.open({.id = "late"}).error;
  CHECK(error->status == 503);
  CHECK(error->reason == Refusal::overload);
  CHECK(error->retry_after.has_value());
  CHECK(d.admission.connections.taken() == 1);
  d.send_row(first);
  CHECK(d.live() == 1);
  d.admission.overload = Overload::none;
  CHECK(d.open({.id = "late"}).sink);
}

TEST_CASE("the largest stream is that which holds the most and was not ended") {
  DoorUnderTest d;
  auto& small = d.open({.id = "small"});
  auto& large = d.open({.id = "large"});
  CHECK(d.door->table().largest() == nullptr);
  const std::vector<std::byte> some(20'000);
  small.sink->frames(some, Clock::now());
  large.sink->frames(some, Clock::now());
  large.sink->frames(some, Clock::now());
  LiveStream* largest = d.door->table().largest();
  REQUIRE(largest);
  CHECK(largest->name() == "large");
  CHECK(largest->held() >= 40'000);
  largest->evict(Clock::now());
  CHECK(large.outbox.close()->code == 1013);
  CHECK(d.door->table().largest()->name() == "small");
  DoorUnderTest::hang_up(small);
  CHECK(d.door->table().largest() == nullptr);
}

TEST_CASE("results that nobody has taken make a stream large too, until it is ended for that") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  LiveStream* largest = d.door->table().largest();
  REQUIRE(largest);
  CHECK(largest->held() > 20'000);
  largest->evict(Clock::now());
  CHECK(client.outbox.unsent() < 1'000);
  const auto told = client.told();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), Catch::Contains("no_room"));
  DoorUnderTest::hang_up(client);
  CHECK(d.stats().results.value() == 0);
}

TEST_CASE(
    "a client that was told the end gets all that it was told before, however short memory is") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  client.sink->end(Clock::now());
  d.run();
  d.answer(worker, {{Answer::Kind::text, std::string(20'000, 'a')}});
  LiveStream* stream = d.door->table().largest();
  REQUIRE(stream);
  d.answer(worker);  // END
  CHECK(d.door->table().largest() == nullptr);
  stream->evict(Clock::now());
  const auto told = client.told();
  REQUIRE(told.size() == 3);
  CHECK_THAT(told[1], Catch::Contains(R"("seq":0)"));
  CHECK_THAT(told[2], Catch::Contains("closed"));
  CHECK(client.outbox.close()->code == 1000);
}

TEST_CASE("a client without a worker is told so, however short memory is") {
  DoorUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.sink->frames(some, Clock::now());
  LiveStream* stream = d.door->table().largest();
  REQUIRE(stream);
  stream->stream().dropped(ErrorCode::no_worker, Clock::now());
  CHECK(d.door->table().largest() == nullptr);
  stream->evict(Clock::now());
  CHECK_THAT(client.told().back(), Catch::Contains("no_worker"));
}

TEST_CASE("frames of a client that has ended make no stream large: its end needs them") {
  DoorUnderTest d;
  auto& client = d.open();
  const std::vector<std::byte> some(20'000);
  client.sink->frames(some, Clock::now());
  REQUIRE(d.door->table().largest());
  client.sink->end(Clock::now());
  CHECK(d.door->table().largest() == nullptr);
}

TEST_CASE("results reach the client in order, and count as written when they are") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open({.id = "mic"});
  (void)client.told();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, "a"}});
  CHECK(d.stats().results.value() == 1);
  CHECK_THAT(client.told().front(), Catch::Contains(R"("seq":0)") && Catch::Contains(R"("a")"));
  client.sink->written(1, Clock::now());
  CHECK(d.stats().results.value() == 0);
  CHECK(d.stats().latency.sum() > 0);
}

TEST_CASE("a stream outlives its connection until its rows are done") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  DoorUnderTest::hang_up(client);
  d.run();
  CHECK(d.live() == 1);
  CHECK(d.admission.connections.taken() == 1);
  d.answer(worker);
  CHECK(d.live() == 1);
  d.answer(worker);  // ABORT
  CHECK(d.live() == 0);
  CHECK(d.admission.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.stats().open.value() == 0);
  CHECK(d.stats().buffer.value() == 0);
}

TEST_CASE("a stream that gets no session is lost") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  client.sink.reset();
  d.run();
  d.answer(worker);
  d.answer(worker);  // ABORT
  CHECK(d.live() == 0);
  CHECK(d.admission.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.stats().closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a stream whose connection is too old ends as at a drain") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  (void)client.told();
  client.sink->retire(Clock::now());
  d.door->table().drain(Clock::now());  // the service stops too
  CHECK(client.told() == std::vector<std::string>{R"({"type":"goaway","retry_after_ms":1000})"});
  d.send_row(client);  // what was on its way
  d.answer(worker);
  d.answer(worker);  // END
  CHECK(client.told().back() == R"({"type":"closed","frames":4,"chunks":1})");
  CHECK(client.outbox.close()->code == 1012);
  CHECK(d.stats().closed[StreamClosing::drain].value() == 1);
}

TEST_CASE("a stream whose rows are done is kept until its connection is gone") {
  DoorUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  client.sink->end(Clock::now());
  d.run();
  d.answer(worker);
  CHECK(d.hub().room().taken() == 0);
  CHECK(client.told().back() == R"({"type":"closed","frames":0,"chunks":0})");
  CHECK(d.live() == 1);
  DoorUnderTest::hang_up(client);
  CHECK(d.live() == 0);
}
