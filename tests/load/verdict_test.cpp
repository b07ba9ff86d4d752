// SPDX-License-Identifier: Apache-2.0
#include "load/verdict.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

// Ten streams of 1000 frames.
struct Fixture {
  Fixture() {
    report.plan.streams = 10;
    report.answered = true;
    report.clients.frames_ended = 10'000;
    report.worker.emplace(schedule).frames_ended = 10'000;
  }

  Schedule schedule{LoadPlan{}};
  LoadReport report{.clients = ClientOutcome(schedule)};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a run in which all came and was answered is whole") {
  CHECK(is_whole(report));
  CHECK(lost_frames(report) == 0);
}

TEST_CASE_METHOD(Fixture, "whatever went wrong at either end is no whole run") {
  SECTION("refused") { report.clients.refused["503"] = 1; }
  SECTION("broken") { report.clients.broken = 1; }
  SECTION("shed") { report.clients.shed = 1; }
  SECTION("results twice") { report.clients.repeated = 1; }
  SECTION("errors") { report.clients.failed = 1; }
  SECTION("mixed up") { report.clients.wrong = 1; }
  SECTION("lost, says the service") { report.clients.lost = 1; }
  SECTION("lost between two rows") { report.worker->lost = 1; }
  SECTION("lost behind the last row") { report.worker->frames_ended = 9'999; }
  SECTION("rows twice") { report.worker->repeated = 1; }
  SECTION("damaged") { report.worker->damaged = 1; }
  SECTION("shed, says a row") { report.worker->shed = 1; }
  SECTION("of nobody") { report.worker->unknown = 1; }
  SECTION("neither END nor ABORT") { report.worker->unended = 1; }
  SECTION("END of one that vanished") { report.worker->ended = 1; }
  SECTION("unanswered") { report.clients.unanswered = 1; }
  CHECK_FALSE(is_whole(report));
}

TEST_CASE_METHOD(Fixture, "where nothing is to be answered nothing is missed") {
  report.answered = false;
  report.clients.unanswered = 10;
  CHECK(is_whole(report));
}

TEST_CASE_METHOD(Fixture, "what a row says is shed is not lost") {
  report.clients.lost = 500;
  report.worker->shed = 500;
  CHECK(lost_frames(report) == 0);
  CHECK_FALSE(is_whole(report));
}

TEST_CASE_METHOD(Fixture, "every ABORT counts from when its own stream vanished") {
  const Time at{1h};
  report.clients.vanishings = {{{3, 0}, at}, {{3, 7}, at + 1s}};
  report.worker->aborts = {{{3, 0}, at + 5s}, {{3, 7}, at + 2s}, {{4, 0}, at + 9s}};
  CHECK(abort_times(report).count() == 2);
  CHECK(abort_times(report).greatest() == 5s);
}

TEST_CASE_METHOD(Fixture, "what is spent counts for what was done in that time") {
  report.counted = {
      Sample{.clients = 1ms, .server = Usage{.cpu = 5ms}, .packets = 50, .rows = 10},
      Sample{
          .clients = 3ms, .worker = 4us, .server = Usage{.cpu = 6ms}, .packets = 250, .rows = 14}};
  const Spent with_worker = spent(report);
  CHECK(with_worker.clients == 10us);
  CHECK(with_worker.worker == 1us);
  CHECK(with_worker.server == 250us);  // four rows came out, whatever went in
  report.worker.reset();
  CHECK(spent(report).server == 5us);
  report.counted.back().server.reset();
  CHECK_FALSE(spent(report).server);
}

TEST_CASE_METHOD(Fixture, "memory counts from before any stream was open") {
  CHECK_FALSE(stream_bytes(report));
  report.before.server = Usage{.bytes = 1000};
  report.idle.server = Usage{.bytes = 3000};
  report.counted = {Sample{.server = Usage{.bytes = 5000}}};
  CHECK(stream_bytes(report)->idle == 200);
  CHECK(stream_bytes(report)->streaming == 400);
}
