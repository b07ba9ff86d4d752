// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "schemas/client_codec.h"
#include "tests/client/wire_words.h"
#include "tests/support/patience.h"
#include "transport/zeromq/router.h"

namespace millrace::test {

// The ZeroMQ socket of a service, with its own thread: passes each message to a test's script,
// which replies, and queues a description of it (wire_words.h).
class ScriptedRouter : private ZeromqSink {
 public:
  // Called on the router's thread.
  using Script = std::function<void(ScriptedRouter&, const client_protocol::ToService&)>;

  explicit ScriptedRouter(Script script, std::uint16_t port = 0)
      : script_(std::move(script)),
        router_(context_.get_executor(), {.endpoint = "tcp://127.0.0.1:" + std::to_string(port)},
                connections_, stats_) {
    router_.start(*this);
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~ScriptedRouter() {
    context_.stop();
    thread_.join();
  }

  std::uint16_t port() const { return router_.port(); }
  std::string url() const { return "tcp://127.0.0.1:" + std::to_string(port()); }

  // The description of the next message; "" if none arrives in time.
  std::string next_message() { return received_.pop_until(Clock::now() + patience).value_or(""); }

  // The peer of the last message. Called by the script.
  ZeromqPeer peer() const { return peer_; }
  // Sends to the peer of the last message, as soon as its queue has space. Called by the script, or
  // in post().
  void reply(const auto& message) { send(encoder_.encode(message)); }
  void reply_raw(std::string_view bytes) {
    send({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  }
  void post(std::function<void()> task) { net::post(context_, std::move(task)); }

 private:
  bool received(ZeromqPeer peer, ZeromqMessage message, Time) override {
    peer_ = peer;
    const auto decoded = decoder_.to_service(message.bytes());
    (void)received_.try_push(decoded ? words_of(*decoded) : "nonsense");
    if (decoded) script_(*this, *decoded);
    return false;
  }
  void malformed(ZeromqPeer) override { (void)received_.try_push("malformed"); }
  void writable(ZeromqPeer) override {
    for (; !waiting_.empty(); waiting_.pop_front())
      if (!is_sent(waiting_.front().first, waiting_.front().second)) return;
  }
  void lost(ZeromqPeer) override { (void)received_.try_push("lost"); }

  void send(Bytes message) {
    if (waiting_.empty() && is_sent(peer_, message)) return;
    waiting_.emplace_back(peer_, std::vector(message.begin(), message.end()));
  }
  bool is_sent(ZeromqPeer peer, Bytes message) {
    return router_.send(peer, message) != ZeromqRouter::Sent::full;
  }

  const Script script_;
  Queue<std::string> received_{100'000};
  Budget connections_{100};
  ZeromqStats stats_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_{1 << 20};
  ZeromqPeer peer_{};
  std::deque<std::pair<ZeromqPeer, std::vector<std::byte>>> waiting_;
  net::io_context context_{1};
  ZeromqRouter router_;
  std::jthread thread_;
};

// A script that opens each stream as "mic-N" with this credit, answers each message of frames with
// their bytes, and closes a stream after End.
inline ScriptedRouter::Script echo(std::uint64_t credit = 1 << 20) {
  return [credit](ScriptedRouter& service, const client_protocol::ToService& message) {
    namespace cp = client_protocol;
    if (const auto* open = std::get_if<cp::Open>(&message)) {
      const std::string name = "mic-" + std::to_string(open->stream);
      service.reply(
          cp::Ready{.stream = open->stream, .id = name, .pipeline = "default", .frame_bytes = 2});
      service.reply(cp::Credit{.stream = open->stream, .frames = credit});
    } else if (const auto* frames = std::get_if<cp::Frames>(&message)) {
      if (frames->bytes.empty()) return;
      service.reply(cp::Result{.stream = frames->stream,
                               .begin = frames->at,
                               .end = frames->at + 1,
                               .kind = Answer::Kind::text,
                               .data = frames->bytes});
    } else if (const auto* flush = std::get_if<cp::Flush>(&message)) {
      if (flush->mark) service.reply(cp::Flushed{.stream = flush->stream, .mark = *flush->mark});
    } else if (const auto* end = std::get_if<cp::End>(&message)) {
      service.reply(cp::Closed{.stream = end->stream, .frames = 5, .chunks = 2});
    }
  };
}

}  // namespace millrace::test
