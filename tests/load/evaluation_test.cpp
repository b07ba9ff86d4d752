// SPDX-License-Identifier: Apache-2.0
#include "load/evaluation.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

// Ten streams of 1000 frames.
struct EvaluationFixture {
  EvaluationFixture() {
    report.plan.streams = 10;
    report.answered = true;
    report.clients.frames_ended = 10'000;
    report.worker.emplace(schedule).frames_ended = 10'000;
  }

  Schedule schedule{LoadPlan{}};
  const Time due = schedule.counted_from();
  LoadReport report{.clients = ClientOutcome(schedule)};
};

}  // namespace

TEST_CASE_METHOD(EvaluationFixture, "a run is whole if everything arrived and was answered") {
  CHECK(is_whole(report));
  CHECK(lost_frames(report) == 0);
}

TEST_CASE_METHOD(EvaluationFixture, "a run with any fault at either end is not whole") {
  SECTION("refused") { report.clients.refused["503"] = 1; }
  SECTION("broken") { report.clients.broken = 1; }
  SECTION("shed") { report.clients.shed = 1; }
  SECTION("duplicate results") { report.clients.repeated = 1; }
  SECTION("errors") { report.clients.failed = 1; }
  SECTION("mixed up") { report.clients.wrong = 1; }
  SECTION("lost, reported by the service") { report.clients.lost = 1; }
  SECTION("lost between two rows") { report.worker->lost = 1; }
  SECTION("lost after the last row") { report.worker->frames_ended = 9'999; }
  SECTION("duplicate rows") { report.worker->repeated = 1; }
  SECTION("damaged") { report.worker->damaged = 1; }
  SECTION("shed, reported by a row") { report.worker->shed = 1; }
  SECTION("of another run") { report.worker->unknown = 1; }
  SECTION("neither END nor ABORT") { report.worker->unended = 1; }
  SECTION("END of a stream that disconnected") { report.worker->ended = 1; }
  SECTION("a commit without a final") { report.clients.unfinished = 1; }
  SECTION("unanswered") { report.clients.unanswered = 1; }
  CHECK_FALSE(is_whole(report));
}

TEST_CASE_METHOD(EvaluationFixture, "without a worker that answers, no answer is missing") {
  report.answered = false;
  report.clients.unanswered = 10;
  CHECK(is_whole(report));
}

TEST_CASE_METHOD(EvaluationFixture, "without totals, the rows of the own worker must be answered") {
  report.spoken = Spoken::openai;
  report.worker->framed = 110;
  report.worker->closing = 10;  // OpenAI's clients have left
  report.clients.answered = 100;
  CHECK(is_whole(report));
  CHECK(unanswered_rows(report) == 0);
  report.clients.answered = 99;
  CHECK(unanswered_rows(report) == 1);
  CHECK_FALSE(is_whole(report));
  report.spoken = Spoken::deepgram;
  CHECK(unanswered_rows(report) == 11);
}

TEST_CASE_METHOD(EvaluationFixture, "Deepgram need not answer every commit") {
  report.spoken = Spoken::deepgram;
  report.answered = false;
  report.clients.unfinished = 3;
  CHECK(is_whole(report));
}

TEST_CASE_METHOD(EvaluationFixture, "without results, the finals count for a bound") {
  report.clients.finals.add(due, due + 4ms);
  report.clients.texts.add(due, due + 9ms);
  CHECK(p99_of(report) == 4ms);
}

TEST_CASE_METHOD(EvaluationFixture, "frames that a row reports as shed are not lost") {
  report.clients.lost = 500;
  report.worker->shed = 500;
  CHECK(lost_frames(report) == 0);
  CHECK_FALSE(is_whole(report));
}

TEST_CASE_METHOD(EvaluationFixture,
                 "the time of an ABORT starts when its stream was disconnected") {
  const Time at{1h};
  report.clients.disconnects = {{{3, 0}, at}, {{3, 7}, at + 1s}};
  report.worker->aborts = {{{3, 0}, at + 5s}, {{3, 7}, at + 2s}, {{4, 0}, at + 9s}};
  CHECK(abort_times(report).count() == 2);
  CHECK(abort_times(report).greatest() == 5s);
}

TEST_CASE_METHOD(EvaluationFixture, "a generator is late if half of the latency is its own delay") {
  report.clients.results.add(due, due + 20ms);
  CHECK_FALSE(is_generator_late(report));
  report.clients.lateness.add(due, due + 9ms);
  CHECK_FALSE(is_generator_late(report));
  report.clients.lateness.add(due, due + 12ms);
  CHECK(is_generator_late(report));
}

TEST_CASE_METHOD(EvaluationFixture, "a delay of the generator below 1 ms is never late") {
  report.clients.results.add(due, due + 1ms);
  report.clients.lateness.add(due, due + 900us);
  CHECK_FALSE(is_generator_late(report));
}

TEST_CASE_METHOD(EvaluationFixture, "CPU time is divided by the work done in the same time") {
  report.counted = {
      Sample{.clients = 1ms, .server = Usage{.cpu = 5ms}, .packets = 50, .rows = 10},
      Sample{
          .clients = 3ms, .worker = 4us, .server = Usage{.cpu = 6ms}, .packets = 250, .rows = 14}};
  const CpuCost with_worker = cpu_cost(report);
  CHECK(with_worker.clients == 10us);
  CHECK(with_worker.worker == 1us);
  CHECK(with_worker.server == 250us);  // per row: four rows were returned
  report.worker.reset();
  CHECK(cpu_cost(report).server == 5us);
  report.counted.back().server.reset();
  CHECK_FALSE(cpu_cost(report).server);
}

TEST_CASE_METHOD(EvaluationFixture, "memory is the growth since before the first stream") {
  CHECK_FALSE(stream_bytes(report));
  report.before.server = Usage{.bytes = 1000};
  report.idle.server = Usage{.bytes = 3000};
  report.counted = {Sample{.server = Usage{.bytes = 5000}}};
  CHECK(stream_bytes(report)->idle == 200);
  CHECK(stream_bytes(report)->streaming == 400);
}
