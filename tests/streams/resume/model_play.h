// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tests/streams/resume/model_service.h"

namespace millrace::test {

// A client and its stream, whose connections are lost at random: messages in both directions, half
// a frame, `ready` and acknowledgements are lost with them. An old connection may stand for a
// while.
class ModelPlay {
 public:
  // `loses_streams`: streams too are lost at random, and the client may reach another node.
  ModelPlay(std::uint32_t seed, bool loses_streams)
      : draw_(seed),
        loses_streams_(loses_streams),
        rule_(rule()),
        script_(draw_),
        client_(script_, rule_.kept.keep),
        nodes_{std::make_unique<ModelNode>(rule_), std::make_unique<ModelNode>(rule_)} {
    const std::uint32_t calm = draw_(0, 40);
    for (std::uint32_t left = draw_(20, 120); left > 0 && !over(); --left)
      draw_.chance(calm) ? proceed() : act();
    for (int left = 3000; !over(); --left) {
      expect(left > 0, "the stream does not end");
      proceed();
    }
    if (!is_lost_) connection_->stream->disconnected(ConnectionEnd::clean, now_);
    connections_.clear();
  }

  const ModelNode::Rule& used_rule() const { return rule_; }
  const Script& script() const { return script_; }
  const ModelClient& client() const { return client_; }
  const ModelNode& node(std::size_t i) const { return *nodes_[i]; }
  // The client came after the window.
  bool is_lost() const { return is_lost_; }
  bool is_opened_anew() const { return is_opened_anew_; }

 private:
  ModelNode::Rule rule() {
    Spec spec{.size = draw_(1, 15), .left = draw_(0, 6), .right = draw_(0, 6)};
    if (loses_streams_) {
      spec.tail = draw_.chance(50) ? Spec::Tail::cover : Spec::Tail::every_start;
      if (spec.tail == Spec::Tail::every_start) spec.right = 0;
      if (draw_.chance(20)) spec.first = spec.size + draw_(0, 15);
    } else {
      spec = random_rule(draw_).spec;
      spec.left %= 8;
    }
    StreamSettings settings = settings_of(spec);
    settings.frames_limit = settings.chunk.width() + draw_(0, 60);
    const std::size_t buffer = draw_.chance(50) ? 1 << 20 : draw_(1, 3000);
    const std::uint64_t longest = draw_.chance(20) ? 0 : draw_(0, 200);
    return {.stream = settings,
            .kept = {.key = key_of(1),
                     .buffer = buffer,
                     .stall = std::chrono::hours(1),
                     .keep = longest +
                             std::max(settings.chunk.width(), spec.step + spec.size + spec.right)},
            .longest_segment = longest,
            .answered = draw_.chance(50) ? 100u : 50u};
  }

  bool over() const { return is_lost_ || client_.is_over(); }
  ModelNode& node() { return *nodes_[at_]; }

  void act() {
    const std::uint32_t what = draw_(1, 100);
    check_memory_before();
    if (what <= 22)
      send();
    else if (what <= 40)
      deliver();
    else if (what <= 48)
      write();
    else if (what <= 60)
      receive();
    else if (what <= 64)
      acknowledge();
    else if (what <= 82)
      node().serve(draw_, now_);
    else if (what <= 87)
      check(std::chrono::milliseconds(draw_(0, 1200)));
    else if (what <= 91)
      cut();
    else if (what <= 96)
      connect();
    else if (what <= 98)
      notice_loss();
    else if (draw_.chance(50))
      wait_for_long();
    else if (loses_streams_ && draw_.chance(70))
      lose();
    check_memory();
  }

  // All that can happen without a loss.
  void proceed() {
    if (!connection_) connect();
    send();
    while (can_deliver()) deliver();
    for (int i = 0; i < 4; ++i) node().serve(draw_, now_);
    write();
    for (int i = 0; i < 3 && connection_ && !over(); ++i) receive();
    acknowledge();
    check(std::chrono::milliseconds(400));
  }

  void send() {
    if (!connection_) return;
    if (auto message = client_.next(draw_)) connection_->to_service.push_back(std::move(*message));
  }
  void acknowledge() {
    if (!connection_) return;
    if (auto message = client_.acknowledgement())
      connection_->to_service.push_back(std::move(*message));
  }

  // The service reads a message, also one of an old connection that still stands.
  ModelConnection& standing() {
    return connections_.size() > 1 && draw_.chance(30) ? *connections_[connections_.size() - 2]
                                                       : *connections_.back();
  }
  bool can_deliver() const {
    return connection_ && !connection_->to_service.empty() && !connection_->stream->paused();
  }
  void deliver() {
    if (connections_.empty()) return;
    ModelConnection& connection = standing();
    if (!connection.stream || connection.to_service.empty() || connection.stream->paused()) return;
    may_grow_ = true;
    connection.deliver(now_);
  }
  void write() {
    if (connections_.empty()) return;
    may_grow_ = true;
    standing().write(draw_(1, 4), now_);
  }
  void receive() {
    if (!connection_) return;
    if (const auto message = connection_->next()) client_.receive(*message);
  }
  void check(Duration time) {
    now_ += time;
    if (!connections_.empty() && connections_.back()->stream)
      connections_.back()->stream->check(now_);
    node().home().sweep(now_);
  }

  // The client loses its connection. What has left it may still arrive.
  void cut() {
    if (!connection_) return;
    const auto arrives = draw_(0, static_cast<std::uint32_t>(connection_->to_service.size()));
    connection_->to_service.resize(arrives);
    connection_ = nullptr;
  }

  // The service notices that the client has lost a connection.
  void notice_loss() {
    if (connections_.empty() || connection_ || !connections_.back()->stream) return;
    constexpr std::array ends{ConnectionEnd::lost, ConnectionEnd::closed, ConnectionEnd::moved};
    StreamInput* const stream = connections_.back()->stream.release();
    if (draw_.chance(50)) stream->disconnected(ends[draw_(0, 2)], now_);
    stream->release(now_);  // the handle itself would take the time of the clock
  }

  // A waiting stream is over, or another stream takes its slot.
  void wait_for_long() {
    if (draw_.chance(50)) {
      now_ += window;
      node().home().sweep(now_);
    } else {
      node().waiting().take_oldest("asr");
    }
  }

  void connect() {
    if (connection_) return;
    may_grow_ = true;
    if (loses_streams_ && draw_.chance(30)) at_ = 1 - at_;  // the client reaches the other node
    client_.connected();
    connections_.push_back(std::make_unique<ModelConnection>());
    ModelConnection& connection = *connections_.back();
    connection_ = &connection;
    const auto token = client_.token();
    ResumableStream* kept = token ? continued(*token) : nullptr;
    const bool anew = token && !kept;
    if (anew && !loses_streams_) return void(is_lost_ = true);
    if (!kept) kept = open(token);
    const std::uint32_t epoch = token.value_or(ModelToken()).epoch;
    const std::string next = ModelConnection::text_of({epoch + 1, kept->opening()});
    connection.stream = kept->attach(connection, epoch, client_.received(), next,
                                     token ? std::optional(!anew) : std::nullopt, now_);
  }

  void lose() {
    cut();
    node().lose();
  }

  // The stream that the client continues; null: it is gone.
  ResumableStream* continued(const ModelToken& token) {
    ResumableStream* kept = node().kept();
    if (!kept) return nullptr;
    const auto how = kept->check(token.epoch, token.opening);
    expect(how != ResumableStream::Epoch::used, "the client shows a token that was used");
    if (how == ResumableStream::Epoch::newer) {
      expect(loses_streams_, "the client shows a token that was not given");
      node().lose();
      return nullptr;
    }
    const Resumption resumption{.token = {},
                                .n = client_.received(),
                                .point = client_.place(),
                                .results = client_.results(),
                                .flushed = client_.flushed(),
                                .set = {}};
    expect(kept->misfit(resumption).empty(), "a number of the client does not fit");
    return node().home().claim(key_of(1));
  }

  ResumableStream* open(const std::optional<ModelToken>& token) {
    node().lose();  // of a client that has lost the first `ready`
    ResumableStream::Settings settings = rule_.kept;
    is_opened_anew_ |= token.has_value();
    settings.epoch = token.value_or(ModelToken()).epoch;
    settings.opened_by = token.value_or(ModelToken()).opening;
    settings.opening = ++openings_;
    settings.n = client_.received();
    settings.results = client_.results();
    settings.flushed = client_.flushed();
    node().open(settings, client_.place());
    return node().kept();
  }

  // A stream that keeps too much gives no row to the lane until messages are acknowledged.
  void check_memory_before() {
    may_grow_ = false;
    rows_ = node().live() ? node().live()->lane.rows.size() : 0;
    was_full_ = node().kept() && node().kept()->reclaimable() >= rule_.kept.buffer;
  }
  void check_memory() {
    if (was_full_ && !may_grow_ && node().kept())
      expect(node().live()->lane.rows.size() == rows_, "a full stream gave a row to the lane");
    const LiveStream* live = node().live();
    if (!live || !node().kept()) return;
    // Without results of rows that the lane has, and the messages of workers.
    const std::size_t most = 2 * max_ready_rows + live->lane.rows.size() / 2 + 20;
    expect(node().kept()->reclaimable() <= rule_.kept.buffer + most * 2 * ClientShelf::overhead,
           "a stream keeps too much");
  }

  Draw draw_;
  const bool loses_streams_;
  const ModelNode::Rule rule_;
  const Script script_;
  ModelClient client_;
  std::array<std::unique_ptr<ModelNode>, 2> nodes_;
  std::size_t at_ = 0;          // the node of the client
  std::uint32_t openings_ = 0;  // of the stream, on both nodes
  std::deque<std::unique_ptr<ModelConnection>> connections_;
  ModelConnection* connection_ = nullptr;  // of the client, if it has one
  Time now_ = at(1000);
  bool is_lost_ = false, is_opened_anew_ = false;
  bool may_grow_ = false, was_full_ = false;
  std::size_t rows_ = 0;
};

}  // namespace millrace::test
