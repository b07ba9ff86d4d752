// SPDX-License-Identifier: Apache-2.0
// Rows whose answers follow later than their batch.
#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using Texts = std::vector<std::string>;

struct Pendings : Pipeline {
  using Pipeline::Pipeline;

  // Hands over the next batch and gives it back, with every row pending or with the answer "now".
  void step(LaneId lane, bool pending) {
    REQUIRE(next(lane) != "none");
    give_back(lane, pending);
  }
  void give_back(LaneId lane, bool pending) {
    const Batch& batch = lanes.lanes().at(lane).held().front();
    const Answer answer =
        pending ? Answer{Answer::Kind::pending} : Answer{Answer::Kind::text, "now"};
    std::vector<Answer> answers(batch.framed.size(), answer), marks(batch.marks.size(), answer);
    CHECK(lanes.done(lane, batch.id, answers, marks, done_at(now)) == Lanes::DoneResult::accepted);
  }
  bool answer(LaneId lane, StreamId stream, std::uint64_t number) {
    Answer late{Answer::Kind::text, "late"};
    return lanes.answer(lane, stream, number, late, now);
  }
  // "1.0 late" for each row that was done since the last call; "1.0 failed" for an error.
  Texts done_rows() {
    Texts all;
    for (const auto& done : events().done)
      all.push_back(std::to_string(number(done.stream)) + "." + std::to_string(done.seq) + " " +
                    (done.answer.kind == Answer::Kind::error ? "failed" : done.answer.data));
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(Pendings,
                 "a pending row is done when its answer follows, and later rows after it") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1), b = open(2);
  row(a);
  step(lane, true);
  row(a);
  row(b);
  step(lane, false);
  CHECK(done_rows() == Texts{"2.0 now"});
  CHECK(answer(lane, a, 0));
  CHECK(done_rows() == Texts{"1.0 late", "1.1 now"});
}

TEST_CASE_METHOD(Pendings, "answers to several pending rows may come in any order") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  for (int i = 0; i < 3; ++i) row(a), step(lane, true);
  CHECK(answer(lane, a, 1));
  CHECK(done_rows().empty());
  CHECK(answer(lane, a, 0));
  CHECK(done_rows() == Texts{"1.0 late", "1.1 late"});
  CHECK(answer(lane, a, 2));
  CHECK(done_rows() == Texts{"1.2 late"});
}

TEST_CASE_METHOD(Pendings, "an answer to a row that is not pending at its worker is ignored") {
  const LaneId lane = lanes.attach(1, now), other = lanes.attach(1, now);
  const auto a = open(1);
  row(a);
  const LaneId has = next(lane) == "none" ? (next(other), other) : lane;
  CHECK_FALSE(answer(has, a, 0));
  give_back(has, true);
  CHECK_FALSE(answer(has == lane ? other : lane, a, 0));
  CHECK_FALSE(answer(has, a, 1));
  CHECK_FALSE(answer(has, StreamId{7}, 0));
  CHECK(answer(has, a, 0));
  CHECK_FALSE(answer(has, a, 0));
  CHECK(done_rows() == Texts{"1.0 late"});
}

TEST_CASE_METHOD(
    Pendings, "a stream with eight pending rows hands over no further rows until one is answered") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1), b = open(2);
  for (int i = 0; i < 8; ++i) row(a), step(lane, true);
  row(a);
  row(a, flag::last | flag::end);
  CHECK(next(lane) == "none");
  row(b);
  CHECK(next(lane) == "2.0");
  give_back(lane, false);
  CHECK(answer(lane, a, 3));
  CHECK(next(lane) == "1.8");
  CHECK(next(lane) == "1.9");
}

TEST_CASE_METHOD(Pendings,
                 "rows that wait when the eighth row becomes pending are held, and stay in order") {
  const LaneId lane = lanes.attach(1, now);
  const auto a = open(1);
  for (int i = 0; i < 7; ++i) row(a), step(lane, true);
  row(a);
  CHECK(next(lane) == "1.7");
  row(a);
  row(a);
  give_back(lane, true);
  CHECK(next(lane) == "none");
  row(a);
  CHECK(answer(lane, a, 0));
  for (const char* expected : {"1.8", "1.9", "1.10"}) {
    CHECK(next(lane) == expected);
    give_back(lane, false);
  }
}

TEST_CASE_METHOD(Pendings, "the rows and the answers that wait behind a pending row are limited") {
  const LaneId lane = lanes.attach(1, now);
  const auto a = open(1), b = open(2);
  row(a);
  step(lane, true);
  for (std::size_t i = 1; i < Lanes::max_due_rows; ++i) row(a), step(lane, false);
  row(a);
  CHECK(next(lane) == "none");
  row(b);
  step(lane, true);
  row(b);
  CHECK(next(lane) == "2.1");
  std::vector<Answer> large{{Answer::Kind::text, std::string(Lanes::max_due_bytes, 'x')}};
  CHECK(lanes.done(lane, last, large, {}, done_at(now)) == Lanes::DoneResult::accepted);
  row(b);
  CHECK(next(lane) == "none");
  CHECK(answer(lane, b, 0));
  CHECK(next(lane) == "2.2");
}

TEST_CASE_METHOD(Pendings, "a pending END row keeps the slot of its stream") {
  Pendings p(1);
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(a, flag::last | flag::end);
  p.row(b);
  p.step(lane, true);
  CHECK(p.next(lane) == "none");
  CHECK(p.answer(lane, a, 0));
  const auto events = p.events();
  CHECK(numbers(events.finished) == std::vector<std::uint64_t>{1});
  CHECK(p.next(lane) == "2.0");
}

TEST_CASE_METHOD(Pendings,
                 "a stream with a pending row does not move from a leaving worker, which stays") {
  const LaneId old = lanes.attach(1, now);
  const auto a = open(1);
  row(a, flag::last);
  step(old, true);
  const LaneId fresh = lanes.attach(1, now);
  lanes.bye(old, now);
  row(a);
  step(old, false);
  CHECK(events().left.empty());
  CHECK(answer(old, a, 0));
  CHECK(events().left.empty());
  row(a, flag::last);
  step(old, false);
  CHECK(numbers(events().left) == std::vector<std::uint64_t>{number(old)});
  row(a);
  CHECK(next(fresh) == "1.3R");
}

TEST_CASE_METHOD(Pendings,
                 "a row that becomes pending while its stream moves is answered before the move") {
  const LaneId old = lanes.attach(2, now);
  const auto a = open(1);
  row(a, flag::last);
  CHECK(next(old) == "1.0");
  row(a);
  CHECK(next(old) == "1.1");
  const LaneId fresh = lanes.attach(2, now);
  lanes.bye(old, now);
  give_back(old, false);
  give_back(old, true);
  row(a);
  CHECK(next(fresh) == "none");
  CHECK(events().left.empty());
  CHECK(answer(old, a, 1));
  CHECK(next(fresh) == "1.2R");
  CHECK(events().left.size() == 1);
}

TEST_CASE_METHOD(Pendings,
                 "a pending row without an answer in time fails, and its late answer is ignored") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  step(lane, true);
  now += 4s;
  lanes.on_message(lane, now);
  row(a);
  step(lane, true);
  CHECK(lanes.deadline() <= now + 6s);
  for (int second = 0; second < 6; ++second) lanes.on_message(lane, now += 1s);
  lanes.expire(now);
  CHECK(done_rows() == Texts{"1.0 failed"});
  CHECK_FALSE(answer(lane, a, 0));
  CHECK(answer(lane, a, 1));
  CHECK(done_rows() == Texts{"1.1 late"});
  row(a);
  CHECK(next(lane) == "1.2");
}

TEST_CASE_METHOD(Pendings,
                 "the pending rows of a lost worker fail, and are not handed over again") {
  const LaneId first = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  step(first, true);
  row(a);
  CHECK(next(first) == "1.1");
  lanes.lost(first, LossCause::worker, now);
  CHECK(done_rows() == Texts{"1.0 failed"});
  const LaneId second = lanes.attach(2, now);
  CHECK(next(second) == "1.1R");
  give_back(second, false);
  CHECK(done_rows() == Texts{"1.1 now"});
  CHECK_FALSE(answer(second, a, 0));
}

TEST_CASE_METHOD(Pendings,
                 "time for which this process did not run does not count for a pending row") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  step(lane, true);
  now += 60s;
  lanes.extend_deadlines(60s, now);
  lanes.on_message(lane, now);
  lanes.expire(now);
  CHECK(done_rows().empty());
  CHECK(answer(lane, a, 0));
}

TEST_CASE_METHOD(Pendings,
                 "an endpoint in place of or with a late answer ends the segment of its row") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  next(lane);
  std::vector<Answer> pending{{.kind = Answer::Kind::pending, .endpoint = true}};
  lanes.done(lane, last, pending, {}, done_at(now));
  CHECK(answer(lane, a, 0));
  CHECK(events().done.at(0).answer.endpoint);
}

TEST_CASE_METHOD(Pendings, "a lane that is empty except for a row that just became pending stays") {
  const LaneId old = lanes.attach(2, now);
  const auto a = open(1), b = open(2);
  row(b, flag::last);
  CHECK(next(old) == "2.0");
  row(a, flag::last);
  row(b, flag::last, 0);
  CHECK(next(old) == "1.0 2.1");
  lanes.attach(2, now);
  lanes.bye(old, now);
  give_back(old, false);  // b moves when its marker row is done
  std::vector<Answer> answers{{Answer::Kind::text, "now"}}, marks{{Answer::Kind::pending}};
  CHECK(lanes.done(old, last, answers, marks, done_at(now)) == Lanes::DoneResult::accepted);
  CHECK(events().left.empty());
  CHECK(answer(old, b, 1));
  CHECK(events().left.size() == 1);
}

TEST_CASE_METHOD(Pendings,
                 "after bye_wait a stream with a pending row hands over no more, and then moves") {
  const LaneId old = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  step(old, true);
  const LaneId fresh = lanes.attach(2, now);
  lanes.bye(old, now);
  std::uint64_t pending = 0;
  for (int second = 0; second < 60; ++second) {  // one row is always pending
    now += 1s;
    for (const LaneId lane : {old, fresh}) lanes.on_message(lane, now);
    lanes.expire(now);
    row(a);
    if (next(old) == "none") break;
    give_back(old, true);
    CHECK(answer(old, a, pending++));
  }
  CHECK(pending == 59);
  CHECK(next(fresh) == "none");
  CHECK(answer(old, a, pending));
  CHECK(next(fresh) != "none");
  CHECK(events().left.size() == 1);
}

TEST_CASE_METHOD(
    Pendings,
    "a trial waits for the pending rows of its worker, and no batch joins a pending trial") {
  const LaneId first = lanes.attach(2, now);
  const auto a = open(1), b = open(2);
  row(a);
  CHECK(next(first) == "1.0");
  lanes.lost(first, LossCause::worker, now);  // 1.0 is suspect
  const LaneId second = lanes.attach(2, now);
  row(b);
  CHECK(next(second) == "2.0");
  give_back(second, true);
  CHECK(next(second) == "none");  // a row of b is pending
  CHECK(answer(second, b, 0));
  CHECK(next(second) == "1.0R");
  give_back(second, true);
  row(b);
  CHECK(next(second) == "none");
  CHECK(answer(second, a, 0));
  CHECK(next(second) == "2.1");
}

TEST_CASE_METHOD(Pendings, "a stream ends with its second row that fails as a pending trial") {
  const auto a = open(1);
  row(a);
  row(a);
  for (int loss = 0; loss < 4; ++loss) {
    const LaneId lane = lanes.attach(1, now);
    CHECK(next(lane) != "none");
    if (loss % 2 == 1) give_back(lane, true);  // the trial
    lanes.lost(lane, LossCause::worker, now);
  }
  CHECK(events().dropped.at(0).code == ErrorCode::worker_failed);
}

TEST_CASE_METHOD(
    Pendings,
    "answers that are too long to wait behind a pending row become errors of their rows") {
  const LaneId lane = lanes.attach(1, now);
  const auto a = open(1);
  for (int i = 0; i < 3; ++i) row(a), step(lane, true);
  Answer half{Answer::Kind::text, std::string(Lanes::longest_due / 2 + 1, 'x')}, other = half;
  CHECK(lanes.answer(lane, a, 1, half, now));
  CHECK(lanes.answer(lane, a, 2, other, now));
  CHECK(answer(lane, a, 0));
  const auto done = events().done;
  CHECK(done.at(1).answer.data.size() == Lanes::longest_due / 2 + 1);
  CHECK(done.at(2).answer.kind == Answer::Kind::error);
}
