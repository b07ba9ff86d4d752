// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptive_simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <variant>

#include "streams/stream.h"
#include "workers/lanes/lanes.h"

namespace millrace::bench {
namespace {

using namespace std::chrono_literals;

constexpr double rate = 1000;  // frames per second

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}
Duration of_frames(std::uint64_t frames) { return seconds(static_cast<double>(frames) / rate); }

// A client that reads nothing.
class Silent final : public ClientOutput {
 public:
  void ready(std::string_view, std::string_view, std::uint64_t, std::size_t) override {}
  void result(const ResultHead&, const Answer&) override {}
  void flushed(std::uint64_t) override {}
  void rejected(ErrorCode, std::string_view, std::uint64_t) override {}
  void warning(ErrorCode, std::string_view) override {}
  void goaway() override {}
  void error(ErrorCode, std::string_view) override {}
  void closed(std::uint64_t, std::uint64_t, bool) override {}
  void drop_queued() override {}
  std::size_t reclaimable() const override { return 0; }
  void resume() override {}
  void credit_available() override {}
};

LanesRule lanes_rule(const Scene& scene) {
  return {.batch = {.slots = std::max(scene.streams, 1u),
                    .rows = scene.rows,
                    .max_wait = scene.max_wait,
                    .row_buckets = {}},
          .worker_wait = 100h,
          .bye_wait = 100h,
          .timeouts = {.silence = 100h, .answer = 100h, .first_answer = 100h}};
}

class Simulation final : private StreamHost {
 public:
  explicit Simulation(const Scene& scene)
      : scene_(scene),
        chosen_(scene.begin),
        pool_(FrameBuffer::block_bytes(2, scene.sizes.back()), 1000, stats_.buffer),
        lanes_(lanes_rule(scene)),
        lane_(lanes_.attach(scene.credits, Time{})),
        packet_(std::size_t{2} * scene.packet),
        random_(scene.seed) {
    outcome_.shares.resize(scene.sizes.size());
    outcome_.by_second.resize(static_cast<std::size_t>(scene.end / 1s) + 2);
    for (std::uint32_t i = 0; i < scene.streams; ++i) add_client(i);
    std::ranges::sort(clients_, {}, &Client::phase);
    by_id_.resize(clients_.size() + 1);
    for (Client& client : clients_) by_id_[client.id] = &client;
  }

  Outcome run() {
    const Duration packet = of_frames(scene_.packet);
    for (Time cycle{}; cycle < Time{scene_.end} && !outcome_.collapsed; cycle += packet)
      for (Client& client : clients_) {
        const Time due = cycle + client.phase;
        if (due < client.opens) continue;
        work_until(due);
        send(client, due);
      }
    const double measured = std::chrono::duration<double>(now_ - Time{scene_.warm_up}).count();
    outcome_.changes_in_10s =
        10 * static_cast<double>(changes() - changes_before_) / measured / scene_.streams;
    const double frames = std::accumulate(outcome_.shares.begin(), outcome_.shares.end(), 0.0);
    for (double& share : outcome_.shares) share /= std::max(frames, 1.0);
    return std::move(outcome_);
  }

 private:
  struct Client {
    std::uint64_t id = 0;
    Duration phase{};  // when it sends, within a packet
    Time opens;        // when it sends the first packet
    std::unique_ptr<Stream> stream;
  };
  struct Working {
    BatchId id;
    Time taken, done;
  };

  void add_client(std::uint32_t i) {
    const auto draw = [&](std::uint32_t below) {
      return of_frames(1) * std::uniform_real_distribution<double>(0, below)(random_);
    };
    const Duration phase = std::chrono::duration_cast<Duration>(draw(scene_.packet));
    const auto spread = std::chrono::duration_cast<Duration>(draw(scene_.sizes.back()));
    clients_.push_back(
        {.id = i + 1,
         .phase = phase,
         .opens = Time{i < scene_.streams - scene_.later ? 0ms : scene_.step} + spread,
         .stream = nullptr});
  }

  StreamSettings settings_of(const Client& client) const {
    StreamSettings settings{.id = StreamId{client.id},
                            .name = "stream-" + std::to_string(client.id),
                            .type = {.rate = rate},
                            .format = {.format = SampleFormat::s16le, .rate = rate},
                            .chunk = {.spec = {.size = scene_.sizes.front()}},
                            .frames_limit = 1'000'000,
                            .opened = now_};
    settings.chunk.sizes.sizes = SizeList(scene_.sizes);
    if (scene_.fixed) settings.chunk.spec.size = *scene_.fixed;
    settings.chunk.sizes.by = scene_.fixed ? SizeRule::By::fixed : SizeRule::By::adaptive;
    settings.max_wait = scene_.max_wait;
    return settings;
  }

  void send(Client& client, Time due) {
    now_ = due;
    if (!client.stream) {
      lanes_.open(StreamId{client.id}, now_);
      client.opens = now_ - of_frames(scene_.packet);  // when its first frame was due
      client.stream = std::make_unique<Stream>(
          settings_of(client),
          StreamLinks{.host = *this, .blocks = pool_, .stats = stats_, .chosen_size = chosen_},
          output_);
    }
    client.stream->frames(packet_, now_);
    settle();
  }

  void add(StreamId stream, ReadyRow row) override { lanes_.add(stream, std::move(row)); }

  // Everything of the worker and the lane up to `until`.
  void work_until(Time until) {
    for (;;) {
      const Time done = worker_.empty() ? Time::max() : worker_.front().done;
      const Time next = std::min(done, lanes_.deadline());
      if (next > until) return;
      now_ = std::max(now_, next);
      if (done <= now_) finish_batch();
      settle();
    }
  }

  void settle() {
    if (!counting_ && now_ >= Time{scene_.warm_up}) {
      counting_ = true;
      changes_before_ = changes();
    }
    for (;;) {
      while (const Batch* batch = lanes_.next(lane_, true, now_)) hand_over(*batch);
      if (lanes_.events().returned.empty()) return;
      deliver();
    }
  }

  void hand_over(const Batch& batch) {
    std::uint32_t width = 0;
    for (const BatchRow& row : batch.framed) width = std::max(width, row.ready.row.size);
    const double time = scene_.service.at(static_cast<double>(batch.framed.size()), width / rate);
    const Time taken = worker_.empty() ? now_ : worker_.back().done;
    worker_.push_back({batch.id, taken, taken + seconds(time)});
    for (const BatchRow& row : batch.framed) count(row, worker_.back());
  }

  // Counts the frames of a row, every tenth of them.
  void count(const BatchRow& batch_row, const Working& in) {
    const Row& row = batch_row.ready.row;
    const Duration waited = in.taken - batch_row.ready.ready;
    if (waited > scene_.longest_wait) outcome_.collapsed = true;
    const Time opened = by_id_[number(batch_row.stream)]->opens;
    const bool measured = in.done >= Time{scene_.warm_up};
    if (measured) outcome_.waits.add(waited);
    const auto size = std::ranges::find(scene_.sizes, row.size) - scene_.sizes.begin();
    if (measured) outcome_.shares[static_cast<std::size_t>(size)] += row.size;
    for (std::uint64_t frame = row.begin + 5; frame < row.end(); frame += 10) {
      const Time due = opened + of_frames(frame);
      if (measured) outcome_.latency.add(in.done - due);
      const auto second = static_cast<std::size_t>(due.time_since_epoch() / 1s);
      if (second < outcome_.by_second.size()) outcome_.by_second[second].add(in.done - due);
    }
  }

  void finish_batch() {
    const Working& batch = worker_.front();
    const Batch& held = lanes_.lanes().at(lane_).held().front();
    answers_.assign(held.framed.size(), {});
    marks_.assign(held.marks.size(), {});
    Instants at;
    at.copied = held.closed;
    at.taken = batch.taken;
    at.done = batch.done;
    lanes_.on_message(lane_, now_);
    (void)lanes_.done(lane_, batch.id, answers_, marks_, at);
    worker_.pop_front();
  }

  void deliver() {
    returned_.swap(lanes_.events().returned);
    lanes_.events().clear();
    for (Returned& message : returned_) {
      Stream& stream = *by_id_[number(message.stream)]->stream;
      if (const auto* batched = std::get_if<RowBatched>(&message.what))
        stream.batched(batched->seq, now_);
      else if (auto* done = std::get_if<RowDone>(&message.what))
        stream.done(std::move(*done), now_);
    }
    returned_.clear();
  }

  std::uint64_t changes() const {
    return stats_.size_changes[SizeChange::up].value() +
           stats_.size_changes[SizeChange::down].value();
  }

  const Scene& scene_;
  StreamStats stats_;
  std::uint32_t chosen_;
  BlockPool pool_;
  Lanes lanes_;
  const LaneId lane_;
  Silent output_;
  const std::vector<std::byte> packet_;
  std::mt19937 random_;
  std::vector<Client> clients_;
  std::vector<Client*> by_id_;
  std::deque<Working> worker_;  // batches that the worker has, the first is in work
  std::vector<Answer> answers_, marks_;
  std::vector<Returned> returned_;
  Time now_{};
  std::uint64_t changes_before_ = 0;
  bool counting_ = false;
  Outcome outcome_;
};

}  // namespace

std::uint32_t capacity(const Scene& scene, std::uint32_t size) {
  const double body = size / rate;
  const auto carries = [&](std::uint32_t streams) {
    const double rows = std::min(streams, scene.rows);
    return streams / body * scene.service.at(rows, body) <= rows;
  };
  std::uint32_t low = 0, high = 1'000'000;
  while (low + 1 < high) (carries((low + high) / 2) ? low : high) = (low + high) / 2;
  return low;
}

Outcome simulate(const Scene& scene) { return Simulation(scene).run(); }

}  // namespace millrace::bench
