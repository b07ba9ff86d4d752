// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/streams/resume/model_client.h"
#include "tests/streams/resume/resumed_stream.h"

namespace millrace::test {

// A connection between the model of a client and a service. Messages wait in both directions. Those
// for the client are written to its socket first.
class ModelConnection final : public ClientOutput {
 public:
  using Kind = FromService::Kind;

  void ready(const StreamReady& ready) override {
    add({.kind = Kind::ready,
         .frames = ready.frames,
         .commands = ready.commands,
         .token = token_in(ready.resume),
         .resumed = ready.resumed});
  }
  void result(const ResultHead& head, const Answer& answer) override {
    add({.kind = Kind::result, .head = head, .text = answer.data});
  }
  void message(const MessageHead&, const Answer& message) override {
    add({.kind = Kind::message, .text = message.data});
  }
  void flushed(std::uint64_t mark, std::uint64_t row) override {
    add({.kind = Kind::flushed, .mark = mark, .row = row});
  }
  void rejected(ErrorCode code, std::string_view, std::uint64_t) override {
    add({.kind = Kind::rejected, .text = std::string(name_of(code))});
  }
  void warning(ErrorCode, std::string_view) override {}
  void goaway() override {}
  void error(ErrorCode code, std::string_view) override {
    add({.kind = Kind::error, .text = std::string(name_of(code))});
  }
  void closed(std::uint64_t frames, std::uint64_t, bool) override {
    add({.kind = Kind::closed, .frames = frames});
  }
  void drop_queued() override {}
  std::size_t reclaimable() const override { return 0; }
  void number(const MessageNumber& number) override { number_ = number; }
  void acknowledged(const ResumePoint& point) override { add({.kind = Kind::ack, .point = point}); }
  void resume() override {}
  void credit_available() override {}

  // The next `count` messages are written.
  void write(std::size_t count, Time now) {
    std::size_t results = 0;
    for (count = std::min(count, unwritten()); count > 0; --count, ++written_) {
      const Kind kind = to_client_[written_].kind;
      results += kind == Kind::result || kind == Kind::message ? 1 : 0;
    }
    full_ = unwritten() >= most_unwritten;
    if (stream) stream->written(results, now);
  }
  std::size_t unwritten() const { return to_client_.size() - written_; }
  // The next message that reaches the client.
  std::optional<FromService> next() {
    if (written_ == 0) return std::nullopt;
    --written_;
    FromService message = std::move(to_client_.front());
    to_client_.pop_front();
    return message;
  }

  // The next message of the client reaches the stream, which is not paused.
  void deliver(Time now) {
    const ToService message = std::move(to_service.front());
    to_service.pop_front();
    if (message.ack) return stream->acknowledge(*message.ack, now);
    if (!message.command) return stream->frames(message.bytes, now);
    const Event& event = message.command->event;
    switch (event.kind) {
      case Event::Kind::flush: return stream->flush(event.mark, now);
      case Event::Kind::reset: return stream->reset(now);
      case Event::Kind::gap: return stream->gap(event.count, now);
      case Event::Kind::message: return stream->post(message.command->text, now);
      case Event::Kind::set: return stream->set(message.command->text, now);
      default: return stream->end(now);
    }
  }

  StreamHandle stream;
  std::deque<ToService> to_service;

  static std::string text_of(const ModelToken& token) {
    return std::to_string(std::uint64_t{token.epoch} << 32 | token.opening);
  }

 private:
  static constexpr std::size_t most_unwritten = 6;

  static ModelToken token_in(std::string_view text) {
    const std::uint64_t number = std::stoull(std::string(text));
    return {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)};
  }

  void add(FromService message) {
    const bool counts = message.kind != Kind::ready && message.kind != Kind::ack;
    if (const auto number = std::exchange(number_, std::nullopt); number && counts) {
      message.n = number->n;
      message.point = number->point;
    }
    to_client_.push_back(std::move(message));
    full_ = unwritten() >= most_unwritten;
  }

  std::deque<FromService> to_client_;
  std::size_t written_ = 0;  // the first of them
  std::optional<MessageNumber> number_;
};

// A node of the service, with its lane, and the stream of one client while it is there.
class ModelNode {
 public:
  struct Rule {
    StreamSettings stream;
    ResumableStream::Settings kept;
    std::uint64_t longest_segment = 0;
    std::uint32_t answered = 100;  // the percentage of rows that have a result
  };

  explicit ModelNode(const Rule& rule) : rule_(rule), home_(window, 0, waiting_) {}
  ~ModelNode() { lose(); }

  // True if the row with this number has a result.
  static bool has_result(std::uint64_t row, std::uint32_t percent) {
    return row * 37 % 100 < percent;
  }

  ResumableStream* kept() const { return home_.find(key_of(1)); }
  LiveStream* live() { return live_.empty() ? nullptr : live_.back().get(); }
  ResumableStreams& home() { return home_; }
  DetachedList& waiting() { return waiting_; }
  // All streams that were opened here.
  const std::deque<std::unique_ptr<LiveStream>>& streams() const { return live_; }

  // Opens the stream of a client, anew if `start` is not empty.
  void open(const ResumableStream::Settings& settings, const ResumePoint& start) {
    const ResumeSettings resume{.longest_segment = rule_.longest_segment, .start = start};
    ResumableStream& kept = home_.add(std::make_unique<ResumableStream>(settings, home_));
    live_.push_back(std::make_unique<LiveStream>(rule_.stream, 0, nullptr, &resume, &kept));
    live_.back()->writes = false;
    kept.take(live_.back()->stream);
    taken_ = first_ = start.seq;
    messages_ = 0;
  }

  // The stream is lost, for example because the node ends.
  void lose() {
    if (ResumableStream* stream = kept()) home_.remove(*stream);
  }

  // The lane takes a row, ends one, or sends a message. False: it has nothing to do.
  bool serve(Draw& draw, Time now) {
    if (!live()) return false;
    LiveStream& live = *live_.back();
    const std::uint64_t rows = first_ + live.lane.rows.size();
    live.now = now;
    if (taken_ < rows && draw.chance(40)) {
      live.stream.batched(taken_++, now);
    } else if (live.answered < rows) {
      if (draw.chance(10)) return message(live, now), true;
      end_row(live);
    } else {
      return false;
    }
    return true;
  }

  std::uint64_t sent_messages() const { return messages_; }  // of the newest one's worker

 private:
  void message(LiveStream& live, Time now) {
    Answer text{Answer::Kind::text, "message " + std::to_string(messages_++)};
    live.stream.message({.seq = live.answered, .message = std::move(text)}, now);
  }

  void end_row(LiveStream& live) {
    const ReadyRow& ready = live.lane.rows[live.answered - first_];
    std::uint64_t value = ready.row.window_begin();
    for (const Bytes part : ready.window)
      for (std::size_t i = 0; i < part.size(); i += 2)
        expect(
            (static_cast<unsigned>(part[i]) | static_cast<unsigned>(part[i + 1]) << 8) == ++value,
            "a row has wrong frames");
    expect(value == ready.row.window_begin() + ready.row.window(), "a row has too few frames");
    const bool has_result = ModelNode::has_result(live.answered, rule_.answered);
    taken_ = std::max(taken_, live.answered + 1);
    live.answer(1, has_result ? Answer::Kind::text : Answer::Kind::none);
  }

  const Rule& rule_;
  DetachedList waiting_;
  std::deque<std::unique_ptr<LiveStream>> live_;
  ResumableStreams home_;
  std::uint64_t first_ = 0, taken_ = 0;  // rows before the stream here, and that the lane has
  std::uint64_t messages_ = 0;
};

}  // namespace millrace::test
