// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chunker/rule_json.h"
#include "service/recorder/stream_recording.h"
#include "streams/stream.h"
#include "tests/recording/writer/recorder_under_test.h"
#include "tests/streams/random_settings.h"
#include "tests/support/bytes.h"
#include "tests/support/stream_ends.h"
#include "tests/support/tapped.h"

namespace millrace::test {

// Passes all that it sees to two taps.
class TwoTaps final : public StreamTap {
 public:
  TwoTaps(std::unique_ptr<StreamTap> first, std::unique_ptr<StreamTap> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) override {
    first_->event(event, arrived, frames);
    second_->event(event, arrived, frames);
  }
  void row(const Row& row) override {
    first_->row(row);
    second_->row(row);
  }
  void answered(std::uint64_t seq, BatchId batch, const Answer& answer) override {
    first_->answered(seq, batch, answer);
    second_->answered(seq, batch, answer);
  }
  void message(std::uint64_t number, std::uint64_t seq, const Answer& message) override {
    first_->message(number, seq, message);
    second_->message(number, seq, message);
  }
  void closed(StreamClosing why, bool ended) override {
    first_->closed(why, ended);
    second_->closed(why, ended);
  }

 private:
  std::unique_ptr<StreamTap> first_, second_;
};

// Records the rows of a stream with the values of their windows, as the stream gives them.
class CopiedRows final : public StreamHost {
 public:
  void add(StreamId, ReadyRow ready) override {
    auto& window = windows.emplace_back();
    for (const Bytes part : ready.window) window.insert(window.end(), part.begin(), part.end());
    rows.push_back(ready.row);
  }

  std::vector<Row> rows;
  std::vector<std::vector<std::byte>> windows;
};

// A random stream that is recorded, between a client and a lane that do random things. The lane
// loses workers, and sometimes gives the stream up.
class LivePlay {
 public:
  LivePlay(std::uint64_t number, std::uint32_t seed, recording::PageWriter& pages, Time now)
      : draw_(seed),
        settings_(settings_at(now)),
        chosen_size_(chosen_size()),
        pool_(FrameBuffer::block_bytes(settings_.type.bytes(), settings_.chunk.width()), 0,
              stats_.buffer),
        stream_(settings_,
                {.host = lane, .blocks = pool_, .stats = stats_, .chosen_size = chosen_size_},
                client_, {},
                std::make_unique<TwoTaps>(tapped.tap(), std::make_unique<StreamRecording>(
                                                            pages, meta(number, now), true))) {}

  bool finished() const { return stream_.finished(); }
  // The client or the lane does something.
  void act(Time now) {
    if (over_ || draw_.chance(35) || (stream_.paused() && draw_.chance(90))) return serve(now);
    const std::uint32_t what = draw_(1, 100);
    if (what <= 70) return send(now);
    if (what <= 73) return stream_.post(R"(["words"])" + std::string(draw_(0, 99), ' '), now);
    if (what <= 75) return stream_.set(R"({"n":)" + std::to_string(draw_(0, 99)) + "}", now);
    if (what <= 82) return stream_.flush(draw_(0, 9), now);
    if (what <= 86) return stream_.flush(std::nullopt, now);
    if (what <= 91) return stream_.reset(now);
    if (what <= 97) return stream_.gap(draw_(1, 50), now);
    if (what <= 98) stop(now);
  }

  const StreamSettings& settings() const { return settings_; }

  Tapped tapped;
  CopiedRows lane;

 private:
  StreamSettings settings_at(Time now) {
    StreamSettings settings = random_settings(draw_);
    settings.opened = now;
    return settings;
  }
  std::uint32_t chosen_size() {
    const SizeList& sizes = settings_.chunk.sizes.sizes;
    return sizes.empty() || draw_.chance(50) ? 0 : one_of(sizes, draw_);
  }
  std::unique_ptr<recording::StreamMeta> meta(std::uint64_t number, Time now) const {
    return std::make_unique<recording::StreamMeta>(
        recording::StreamMeta{.number = number,
                              .name = settings_.name,
                              .pipeline = "default",
                              .rule = to_json(settings_.chunk),
                              .frames = settings_.type,
                              .opened_wall = to_wire(now),
                              .opened_steady = to_wire(now)});
  }

  void send(Time now) {
    std::vector<std::int16_t> values(draw_(1, draw_.chance(10) ? 400 : 60));
    for (std::int16_t& value : values) value = static_cast<std::int16_t>(draw_(0, 60'000) - 30'000);
    stream_.frames(bytes_of(std::span<const std::int16_t>(values)), now);
  }

  void stop(Time now) {
    over_ = true;
    const std::uint32_t how = draw_(1, 6);
    if (how == 1) stream_.disconnected(ConnectionEnd::lost, now);
    if (how == 2) stream_.end(now);
    if (how == 3) stream_.drain(now);
    if (how == 4) stream_.disconnected(ConnectionEnd::clean, now);
    if (how == 5) stream_.evict(now);
    if (how == 6) stream_.dropped(ErrorCode::no_worker, now);
    listens_ = how != 1 && how != 4;
  }

  void serve(Time now) {
    const std::uint32_t what = draw_(1, 100);
    if (what <= 45) return take(now);
    if (what <= 90) return answer(now);
    if (what <= 94) client_.is_full = draw_.chance(30);
    const std::size_t written = std::exchange(client_.unwritten, 0);
    if (listens_) stream_.written(written, now);
    stream_.tick(now);
  }

  void take(Time now) {
    if (taken_ == lane.rows.size() || finished()) return;
    taken_ += draw_(1, static_cast<std::uint32_t>(lane.rows.size() - taken_));
    stream_.batched(taken_ - 1, now);
  }

  void answer(Time now) {
    if (answered_ == taken_ || finished()) return;
    RowDone done{.seq = answered_,
                 .answer = {draw_.chance(50) ? Answer::Kind::json : Answer::Kind::none,
                            std::to_string(draw_(0, 99)), draw_.chance(15)},
                 .at = {}};
    done.in_batch.batch = BatchId{draw_(1, 1000)};
    if (draw_.chance(3)) {
      done.flags = flag::reset;
      done.reason = ResetReason::worker_lost;
    }
    ++answered_;
    stream_.done(std::move(done), now);
  }

  Draw draw_;
  const StreamSettings settings_;
  std::uint32_t chosen_size_;
  StreamStats stats_;
  BlockPool pool_;
  CapturedClient client_;
  Stream stream_;
  std::uint64_t taken_ = 0, answered_ = 0;  // rows
  bool over_ = false, listens_ = true;
};

}  // namespace millrace::test
