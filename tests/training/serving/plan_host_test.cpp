// SPDX-License-Identifier: Apache-2.0
// The host of a plan with connections that the test plays.
#include <catch2/catch.hpp>
#include <deque>

#include "tests/training/serving/plan_server.h"
#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using worker_protocol::Bye;
using worker_protocol::Describe;
using worker_protocol::Done;
using worker_protocol::HandedBatch;
using worker_protocol::Heartbeat;
using worker_protocol::Heartbeats;
using worker_protocol::Hello;
using worker_protocol::Refused;
using worker_protocol::TrainerHello;
using worker_protocol::Unmapped;
using worker_protocol::Welcome;

namespace {

// A host whose home thread is that of the test.
class HostUnderTest {
 public:
  explicit HostUnderTest(const Twelve& twelve, Heartbeats beats = {1h, 1h})
      : host(home_,
             {.served = twelve.served(),
              .log = [this](const WorkerEvent& event) { lines.emplace_back(event.what); },
              .heartbeats = beats},
             bytes_, threads_, stats) {}
  ~HostUnderTest() { host.stop(); }

  void run_until(const auto& happened) {
    const Time guard = soon();
    while (!happened()) {
      if (Clock::now() > guard) throw std::runtime_error("it does not happen");
      if (alive) host.receive(*alive, Heartbeat{});
      home_.restart();
      home_.run_one_for(5ms);
    }
  }

  Link& fresh() { return links_.emplace_back(home_.get_executor()); }
  Link& connect(const TrainerHello& trainer = {}, std::uint32_t credits = 2) {
    Link& link = fresh();
    host.hello(link, {.name = "t", .credits = credits, .trainer = trainer});
    run_until([&] { return !link.idle(); });
    return link;
  }
  Link& attach(const TrainerHello& trainer = {}, std::uint32_t credits = 2) {
    Link& link = connect(trainer, credits);
    (void)link.receive<Welcome>();
    return link;
  }
  HandedBatch next(Link& link) {
    run_until([&] { return !link.idle(); });
    return link.receive<HandedBatch>();
  }
  void done(Link& link, std::uint64_t batch) {
    Done message;
    message.batch = BatchId{batch};
    host.receive(link, message);
  }

 private:
  net::io_context home_{1};
  Budget bytes_{std::uint64_t{1} << 30};
  std::deque<Link> links_;

 public:
  training::TrainingStats stats;
  std::vector<std::string> lines;
  training::PlanHost host;
  Link* alive = nullptr;  // sends heartbeats

 private:
  SlabThreads threads_{training::plan_host_threads};
};

}  // namespace

TEST_CASE("batches are handed over up to the credits, and counted") {
  const Twelve twelve;
  HostUnderTest test(twelve);
  Link& link = test.attach();
  CHECK(test.stats.trainers.value() == 1);
  CHECK(test.next(link).step == 0);
  CHECK(test.next(link).step == 1);
  test.done(link, 2);
  const HandedBatch third = test.next(link);
  CHECK(third.step == 2);
  CHECK(third.steps == twelve.epoch().size());
  CHECK(test.stats.batches.value() == 3);
  CHECK(test.stats.frames.value() == 3 * 4 * 4);
  CHECK(test.stats.step.value() == 2);
}

TEST_CASE("a trainer and a batch are counted before the trainer knows of them") {
  std::vector<std::pair<std::int64_t, std::uint64_t>> counted;
  HostUnderTest test{Twelve()};
  Link& link = test.fresh();
  link.on_send = [&] {
    counted.emplace_back(test.stats.trainers.value(), test.stats.batches.value());
  };
  test.host.hello(link, {.name = "t", .credits = 2, .trainer = TrainerHello{}});
  test.run_until([&] { return counted.size() == 3; });
  CHECK(counted == std::vector<std::pair<std::int64_t, std::uint64_t>>{{1, 0}, {1, 1}, {1, 2}});
}

TEST_CASE("a Done for a batch that the trainer does not hold breaks the protocol") {
  for (const std::uint64_t wrong : {1, 9}) {
    HostUnderTest test{Twelve()};
    Link& link = test.attach();
    CHECK(test.next(link).id == BatchId{1});
    CHECK(test.next(link).id == BatchId{2});
    test.done(link, 1);
    (void)test.next(link);
    test.done(link, wrong);
    CHECK(link.receive<Refused>().code == "protocol");
    CHECK(link.ended);
    CHECK(test.stats.trainers.value() == 0);
  }
}

TEST_CASE("a plan is not described to workers") {
  HostUnderTest test{Twelve()};
  CHECK(test.host.description().error().code == "pipeline");
}

TEST_CASE("a second Hello breaks the protocol") {
  HostUnderTest test{Twelve()};
  Link& link = test.attach();
  (void)test.next(link);
  (void)test.next(link);
  GENERATE(false, true) ? test.host.receive(link, Hello{}) : test.host.receive(link, Describe{});
  CHECK(link.receive<Refused>().code == "protocol");
}

TEST_CASE("Unmapped and Heartbeat have no effect") {
  HostUnderTest test{Twelve()};
  Link& link = test.attach();
  test.host.receive(link, Unmapped{});
  test.host.receive(link, Heartbeat{});
  CHECK(test.next(link).step == 0);
  CHECK_FALSE(link.ended);
}

TEST_CASE("the rank of a lost trainer is free at once, while its threads still end") {
  HostUnderTest test{Twelve()};
  Link& first = test.attach();
  test.host.lost(first, WorkerFailure::disconnect);
  Link& second = test.connect();
  CHECK(second.receive<Welcome>().slabs == 3);
  CHECK(test.stats.trainers.value() == 1);
}

TEST_CASE("a trainer that is lost before Welcome leaves no trace") {
  HostUnderTest test{Twelve()};
  Link& link = test.fresh();
  test.host.hello(link, {.name = "t", .trainer = TrainerHello{}});
  test.host.lost(link, WorkerFailure::disconnect);
  Link& second = test.attach();
  CHECK(test.next(second).step == 0);
  CHECK(test.stats.trainers.value() == 1);
}

TEST_CASE("a silent trainer is lost, and answers have no time limit") {
  // If the test is delayed for longer than half a second, no trainer counts as silent meanwhile.
  HostUnderTest test(Twelve(), {.interval = 2ms, .silence = 700ms});
  Link& busy = test.attach({.rank = 1, .world = 2});
  test.alive = &busy;
  Link& silent = test.attach({.rank = 0, .world = 2});
  (void)test.next(busy);
  (void)test.next(busy);
  test.run_until([&] { return silent.ended; });
  (void)test.next(silent);
  (void)test.next(silent);
  CHECK(silent.receive<Refused>().code == "timeout");
  CHECK_FALSE(busy.ended);
  CHECK(busy.beats > 0);
}

TEST_CASE("a trainer with unread messages gets no heartbeat") {
  HostUnderTest test(Twelve(), {.interval = 2ms, .silence = 1h});
  Link& behind = test.attach({.rank = 0, .world = 2});
  Link& other = test.attach({.rank = 1, .world = 2});
  behind.behind = 1;
  const int before = behind.beats;
  test.run_until([&] { return other.beats > before + 2; });
  CHECK(behind.beats == before);
}
