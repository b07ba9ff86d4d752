// SPDX-License-Identifier: Apache-2.0
//
// Thousands of seeded schedules of streams and workers in virtual time; after each, the history of
// what workers saw and what was done is checked against what was promised.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "workers/lanes.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

struct StreamHistory {
  std::uint64_t cut = 0;   // rows given to the lanes
  std::uint64_t done = 0;  // rows done, in order
  std::map<std::uint64_t, int> handed;
  std::size_t outstanding = 0;  // rows not taken
  bool reset_due = true;        // as the chunker has it: until a row with frames carried it
  bool ended = false, dropped = false, gone = false;
};

// What one worker has of one stream's state: the row it saw last.
struct Worker {
  std::uint32_t credits = 0;
  std::map<StreamId, std::uint64_t> state{};
  std::map<Slot, StreamId> slots{};
};

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed),
        slots_(1 + pick(4)),
        lanes_(LanesRule{
            .batch = {.slots = slots_, .rows = 1 + pick(4), .max_wait = Duration(pick(3) * 1ms)},
            .worker_wait = 30s,
            .bye_wait = 2s,
            .patience = {.silence = 6s, .answer = 3s, .first_answer = 5s}}) {}

  void run() {
    for (int step = 0; step < 300; ++step) {
      act();
      settle();
    }
    finish();
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void act() {
    now_ += std::chrono::milliseconds(pick(4) == 0 ? pick(500) : pick(3));
    switch (pick(12)) {
      case 0: open(); break;
      case 1:
        if (workers_.size() < 4) attach();
        break;
      case 2:
        if (pick(4) == 0) lose();
        break;
      case 3:
        if (pick(4) == 0) bye();
        break;
      case 4:
      case 5:
      case 6: answer(); break;
      default: cut(); break;
    }
    for (auto& [lane, worker] : workers_)
      if (pick(20) != 0) lanes_.heard(lane, now_);
    if (lanes_.deadline() <= now_) lanes_.expire(now_);
  }

  void open() {
    if (streams_.size() - gone_ >= lanes_.capacity()) return;
    const StreamId id{++last_stream_};
    streams_[id];
    lanes_.open(id, now_);
  }

  void cut() {
    std::vector<StreamId> live;
    for (auto& [id, stream] : streams_)
      if (!stream.ended && !stream.gone && stream.outstanding < 8) live.push_back(id);
    if (!live.empty()) cut(live[pick(static_cast<std::uint32_t>(live.size()))], pick(10) == 0);
  }

  void cut(StreamId id, bool end) {
    StreamHistory& stream = streams_[id];
    ReadyRow row;
    row.row.seq = stream.cut++;
    row.row.size = pick(3) == 0 ? 0 : 5;
    row.row.flags = pick(5) == 0 ? flag::last : 0;
    if (row.row.seq == 0) row.row.flags |= flag::start;
    if (stream.reset_due) row.row.flags |= flag::reset;
    if (stream.reset_due) row.row.reason = ResetReason::start;
    if (end) row.row.flags |= flag::last | flag::end;
    if (end && pick(3) == 0) {
      row.row.flags |= flag::abort;
      row.row.size = 0;
    }
    if (row.row.has_frames()) stream.reset_due = false;
    stream.ended = end;
    ++stream.outstanding;
    row.arrived = row.ready = now_;
    lanes_.add(id, row);
  }

  void attach() {
    const std::uint32_t credits = 1 + pick(3);
    workers_[lanes_.attach(credits, now_)] = Worker{.credits = credits};
  }

  std::map<LaneId, Worker>::iterator some_worker() {
    auto worker = workers_.begin();
    std::advance(worker, pick(static_cast<std::uint32_t>(workers_.size())));
    return worker;
  }

  void lose() {
    if (workers_.empty()) return;
    const auto worker = some_worker();
    lanes_.lost(worker->first, now_);
    workers_.erase(worker);
  }

  void bye() {
    if (!workers_.empty()) lanes_.bye(some_worker()->first, now_);
  }

  void answer() {
    if (!workers_.empty()) answer(some_worker()->first);
  }

  bool answer(LaneId lane) {
    const auto& held = lanes_.lanes().at(lane).held();
    if (held.empty()) return false;
    std::vector<Answer> answers(held.front().framed.size(), Answer{Answer::Kind::json, "1"});
    REQUIRE(lanes_.done(lane, held.front().id, answers, {}, now_) == Lanes::Given::taken);
    read_events();
    return true;
  }

  // Hands over whatever is due and reads the events.
  void settle() {
    read_events();
    for (auto& [lane, worker] : workers_)
      while (Batch* batch = lanes_.next(lane, now_)) hand_over(worker, *batch);
    read_events();
    for (auto& [lane, worker] : workers_) {
      const Lane& at = lanes_.lanes().at(lane);
      REQUIRE(at.held().size() <= worker.credits);
      // No row waits past its deadline while the lane has a credit.
      REQUIRE(at.batch_deadline() > now_);
    }
  }

  void hand_over(Worker& worker, const Batch& batch) {
    std::map<StreamId, int> framed;
    const auto before = worker.state;
    for (const auto* rows : {&batch.framed, &batch.marks})
      for (const BatchRow& row : *rows) {
        const Row& at = row.ready.row;
        REQUIRE(at.has_frames() == (rows == &batch.framed));
        if (at.has_frames()) REQUIRE(++framed[row.stream] == 1);
        REQUIRE(number(row.slot) < slots_);
        const auto owner = worker.slots.try_emplace(row.slot, row.stream).first;
        REQUIRE(owner->second == row.stream);  // slots are never shared
        const auto seen = worker.state.find(row.stream);
        const bool continues = seen != worker.state.end() && seen->second + 1 == at.seq;
        const bool opened = std::ranges::any_of(
            lanes_.opened(), [&](const BatchRow* other) { return other->stream == row.stream; });
        REQUIRE(opened == !before.contains(row.stream));
        // No state is continued after a loss without RESET.
        if (at.has_frames() && !continues) REQUIRE(at.is(flag::reset));
        // Only a marker row leaves a RESET due; what was seen then counts as no state.
        if (at.has_frames() || continues)
          worker.state[row.stream] = at.seq;
        else
          worker.state[row.stream] = UINT64_MAX - 1;
        ++streams_[row.stream].handed[at.seq];
      }
  }

  void read_events() {
    LaneEvents events = std::exchange(lanes_.events(), {});
    for (StreamId id : events.taken) --streams_[id].outstanding;
    for (const auto& done : events.done) {
      StreamHistory& stream = streams_[done.stream];
      REQUIRE(done.row.row.seq == stream.done++);  // in order, each once
      REQUIRE(stream.handed[done.row.row.seq] >= 1);
      REQUIRE(!stream.dropped);
      if (done.row.row.is(flag::end))
        for (auto& [lane, worker] : workers_) {
          worker.state.erase(done.stream);
          std::erase_if(worker.slots, [&](auto& slot) { return slot.second == done.stream; });
        }
    }
    for (const auto& dropped : events.dropped) {
      StreamHistory& stream = streams_[dropped.stream];
      stream.dropped = true;
      stream.outstanding = 0;
    }
    for (StreamId id : events.gone) {
      REQUIRE(!std::exchange(streams_[id].gone, true));
      ++gone_;
    }
    for (const auto* ended : {&events.overdue, &events.left})
      for (LaneId lane : *ended) workers_.erase(lane);
  }

  // Every stream ends, every worker answers: nothing may be left.
  void finish() {
    lanes_.drain(Time::max());
    attach();
    for (auto& [id, stream] : streams_)
      if (!stream.ended && !stream.gone) {
        cut(id, true);
      }
    for (int round = 0; round < 2000 && lanes_.streams() > 0; ++round) {
      settle();
      for (const auto& lane : lanes_.lanes()) lanes_.heard(lane.first, now_);
      std::vector<LaneId> lanes;
      for (auto& [lane, worker] : workers_) lanes.push_back(lane);
      for (LaneId lane : lanes)
        if (lanes_.lanes().contains(lane)) answer(lane);
      now_ += 1ms;
    }
    read_events();
    REQUIRE(lanes_.streams() == 0);
    for (auto& [id, stream] : streams_) {
      REQUIRE(stream.gone);
      if (!stream.dropped) REQUIRE(stream.done == stream.cut);
    }
  }

  std::mt19937_64 random_;
  std::uint32_t slots_;
  Lanes lanes_;
  Time now_{1h};
  std::map<StreamId, StreamHistory> streams_;
  std::map<LaneId, Worker> workers_;
  std::uint64_t last_stream_ = 0;
  std::size_t gone_ = 0;
};

}  // namespace

TEST_CASE("rows are handed over at least once, done once and in order, whatever the workers do") {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    INFO("seed " << seed);
    Schedule(seed).run();
  }
}
