// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "tests/batcher/lane_model.h"
#include "tests/support/sampled.h"

using namespace millrace;
using millrace::test::demand;
using millrace::test::LaneModel;
using namespace std::chrono_literals;

namespace {

// A lane with a worker of a few credits, and random events in virtual time. Streams open, have rows
// ready, end or leave. The worker returns batches, or is lost and replaced. After every step the
// batcher must answer like the model, and must have closed every batch that it can.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {
    rule_.slots = 1 + pick(12);
    rule_.rows = 1 + pick(8);
    rule_.max_wait = pick(3) == 0 ? 0ms : 1ms * pick(20);
    rule_.stateful = pick(3) > 0;
    if (pick(2) == 0) rule_.row_buckets = {rule_.rows};
    if (rule_.rows > 2 && pick(2) == 0) rule_.row_buckets = {2, rule_.rows};
    rule_.columns.context = pick(20);
    if (pick(2) == 0) rule_.width_buckets = {1 + pick(40), 50 + pick(40), 140};
    credits_ = 1 + pick(3);
    attach();
  }

  void step() {
    switch (pick(16)) {
      case 0:
      case 1: open(); break;
      case 2:
      case 3:
      case 4: pass(1us * pick(8000)); break;
      case 5:
      case 6: give_back(); break;
      case 7:
        if (pick(4) == 0) leave();
        break;
      case 8:
        if (pick(10) == 0) lose_worker();
        break;
      default: add_row(); break;
    }
    settle();
  }

  void drain() {
    batcher_->drain();
    model_->drain();
    settle();
    while (!in_flight_.empty()) {
      give_back();
      settle();
    }
    demand(batcher_->waiting() == 0, "after a drain no row waits");
  }

 private:
  struct Stream {
    StreamId id{};
    Slot slot{};
    std::uint64_t next = 0;       // seq of the row cut next
    bool ended = false;           // its END row was cut
    std::deque<ReadyRow> undone;  // cut and not done, in order
  };

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void attach() {
    batcher_ = std::make_unique<Batcher>(rule_);
    model_ = std::make_unique<LaneModel>(rule_);
  }

  void settle() {
    while (in_flight_.size() < credits_) {
      const auto choice = batcher_->next(now_, in_flight_.empty());
      demand(choice == model_->next(now_, in_flight_.empty()),
             "the batcher closes when and why the model does");
      if (!choice) break;
      Batch batch;
      batcher_->close(*choice, now_, batch);
      model_->judge(batch, *choice, now_);
      in_flight_.push_back(std::move(batch));
    }
    demand(deadline() == model_->deadline(in_flight_.empty()), "the deadline is the oldest row's");
    demand(batcher_->waiting() == model_->waiting(), "every waiting row is counted");
    demand(batcher_->streams() == streams_.size(), "every stream is counted");
  }

  Time deadline() const { return batcher_->deadline(in_flight_.empty()); }

  // Like the home thread: wakes at every deadline on the way.
  void pass(Duration time) {
    const Time until = now_ + time;
    while (in_flight_.size() < credits_ && deadline() <= until) {
      demand(deadline() > now_, "no batch that can close waits past its deadline");
      now_ = deadline();
      settle();
    }
    now_ = until;
  }

  void open() {
    Stream stream{.id = StreamId{++last_id_}, .undone = {}};
    open_slot(stream);
  }

  void open_slot(Stream stream) {
    const auto slot = batcher_->open(stream.id);
    demand(slot == model_->open(stream.id), "a stream gets the lowest free slot");
    if (!slot) return;
    stream.slot = *slot;
    for (const ReadyRow& row : stream.undone) add(stream, row);
    streams_.push_back(std::move(stream));
  }

  void add(const Stream& stream, const ReadyRow& row) {
    batcher_->add(stream.slot, row);
    model_->add(stream.id, row);
  }

  void add_row() {
    if (streams_.empty()) return;
    Stream& stream = streams_[pick(static_cast<std::uint32_t>(streams_.size()))];
    if (stream.ended || stream.undone.size() >= 12) return;
    ReadyRow row;
    row.row.seq = stream.next++;
    row.row.size = pick(3) == 0 ? 0 : 1 + pick(100);
    if (row.row.has_frames()) {
      row.row.left = pick(21);
      row.row.right = pick(21);
    }
    row.ready = std::max(now_ - 1us * pick(3000), ready_);  // it came by a queue
    ready_ = std::max(ready_, row.ready - 1ms);
    if (pick(12) == 0) {
      row.row.flags = flag::last | flag::end;
      stream.ended = true;
    }
    stream.undone.push_back(row);
    add(stream, row);
  }

  void give_back() {
    if (in_flight_.empty()) return;
    const Batch batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const BatchRow& row : batch.framed) done(row);
    for (const BatchRow& row : batch.marks) done(row);
  }

  void done(const BatchRow& row) {
    const auto stream = std::ranges::find(streams_, row.stream, &Stream::id);
    if (stream == streams_.end()) return;  // it left meanwhile
    demand(stream->undone.front().row == row.ready.row, "rows are done in order");
    stream->undone.pop_front();
    if (!row.ready.row.is(flag::end)) return;
    batcher_->release(stream->slot);
    demand(model_->remove(stream->id).empty(), "nothing follows an END row");
    streams_.erase(stream);
  }

  void leave() {
    if (streams_.empty()) return;
    const auto stream = streams_.begin() + pick(static_cast<std::uint32_t>(streams_.size()));
    const auto rows = batcher_->remove(stream->slot);
    const auto expected = model_->remove(stream->id);
    demand(std::ranges::equal(rows, expected, {}, &ReadyRow::row, &ReadyRow::row),
           "a stream that leaves takes its waiting rows with it");
    streams_.erase(stream);
  }

  // All rows that were cut and are not done go to the next worker, handed over or not. The rows of
  // its oldest batch are suspects.
  void lose_worker() {
    if (!in_flight_.empty())
      for (const auto* rows : {&in_flight_.front().framed, &in_flight_.front().marks})
        for (const BatchRow& row : *rows) suspect(row);
    in_flight_.clear();
    attach();
    const auto streams = std::move(streams_);
    streams_.clear();
    for (const Stream& stream : streams) open_slot(stream);
  }

  void suspect(const BatchRow& row) {
    for (Stream& stream : streams_)
      for (ReadyRow& undone : stream.undone)
        if (stream.id == row.stream && undone.row == row.ready.row) undone.suspect = true;
  }

  std::mt19937_64 random_;
  BatchRule rule_;
  std::uint32_t credits_ = 1;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<LaneModel> model_;
  Time now_{std::chrono::hours(1)};
  Time ready_ = now_ - 1s;
  std::uint64_t last_id_ = 0;
  std::vector<Stream> streams_;
  std::deque<Batch> in_flight_;
};

}  // namespace

TEST_CASE("a batcher with random input keeps every rule") {
  for (std::uint64_t seed = 0; seed < test::sampled(5000u); ++seed) {
    INFO("seed " << seed);
    Schedule schedule(seed);
    for (int i = 0; i < 200; ++i) schedule.step();
    schedule.drain();
  }
}
