// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/client/scripted_router.h"

namespace millrace::test {

// Streams of a service that resumes them over ZeroMQ (docs/resume.md). Each frame of two bytes is a
// row, whose result has its text. Each Post and each SetOptions is answered by a message.
class ResumingRouter {
  using Service = ScriptedRouter;

 public:
  struct Options {
    std::uint64_t keep = 1000;  // frames
    std::uint64_t lag = 3;      // frames between the newest row and the place that is acknowledged
    std::uint64_t credit = 4;   // frames
    bool forgets = false;       // has no longer the streams that clients continue
    bool resumes = true;        // false: refuses `resume`
    bool knows_resume = true;   // false: ignores it, as an older service
    std::string refusal{};      // the code with which it refuses to continue streams
    int refusals = 1 << 30;     // how often
    int silent = 0;             // the number of continued streams that get no answer
    int wrong = 0;              // the number of connections whose messages have wrong numbers
  };

  explicit ResumingRouter(Options options, std::uint16_t port = 0)
      : options_(std::move(options)),
        router_([this](Service&, const client_protocol::ToService& message) { receive(message); },
                port) {}

  std::string url() const { return router_.url(); }
  std::uint16_t port() const { return router_.port(); }
  int refused() const { return refused_; }  // as Options::refusal
  int opened() const { return opened_; }    // requests, also those that were refused
  int plain() const { return plain_; }      // those without `resume`
  // The streams whose last message was acknowledged.
  int finished() const { return finished_; }
  std::uint64_t acked() const { return acked_; }  // messages of all streams
  // The mistakes of the client.
  std::vector<std::string> problems() {
    std::promise<std::vector<std::string>> all;
    router_.post([&] { all.set_value(problems_); });
    return all.get_future().get();
  }

 private:
  struct Kept {
    enum class Type { result, message, flushed, rejected, closed } type{};
    std::uint64_t seq = 0;
    std::string text{};
    ResumePoint point{};
  };
  struct Stream {
    std::uint64_t frames = 0, commands = 0, acked = 0, first = 0, have = 0;
    std::int64_t credit = 0;
    std::vector<Kept> log;
    std::vector<ResumePoint> places;
    ResumePoint point;
    int tokens = 0;
    std::string shown;
    bool used = false, resumes = false, ended = false;
    int wrong = 0;
    ZeromqPeer peer{};
  };

  static std::string token_of(int number) { return "secret-" + std::to_string(number); }

  void receive(const client_protocol::ToService& message) {
    namespace cp = client_protocol;
    if (const auto* open = std::get_if<cp::Open>(&message)) return receive_open(*open);
    const std::uint64_t number = std::visit([](const auto& one) { return one.stream; }, message);
    if (!names_.contains(number)) return problems_.emplace_back("no such stream"), void();
    Stream& stream = streams_[names_[number]];
    if (router_.peer() != stream.peer) return;  // its connection is no longer that of the stream
    stream.used = true;
    if (const auto* received = std::get_if<cp::Received>(&message)) {
      if (received->n > stream.first + stream.log.size()) problems_.emplace_back("received");
      acked_ += received->n - stream.acked;
      stream.acked = received->n;
      if (stream.ended && received->n == stream.first + stream.log.size()) ++finished_;
      return;
    }
    if (stream.ended) return problems_.emplace_back("after the end"), void();
    if (const auto* frames = std::get_if<cp::Frames>(&message))
      return receive_frames(*frames, stream);
    ++stream.commands;
    using Type = Kept::Type;
    if (const auto* flush = std::get_if<cp::Flush>(&message))
      give(number, {Type::flushed, stream.frames, std::to_string(flush->mark.value_or(0))});
    if (const auto* gap = std::get_if<cp::Gap>(&message)) stream.frames += gap->frames;
    if (const auto* post = std::get_if<cp::Post>(&message))
      give(number, {Type::message, 0, std::string(post->data)});
    if (const auto* set = std::get_if<cp::SetOptions>(&message))
      give(number, {Type::message, 0, std::string(set->options)});
    if (std::holds_alternative<cp::End>(message)) {
      stream.ended = true;
      give(number, {Type::closed, stream.frames});
    }
  }

  void receive_open(const client_protocol::Open& open) {
    ++opened_;
    const std::string name = open.id ? std::string(*open.id) : "mic";
    if (!open.resume) ++plain_;
    if (open.resume && !options_.resumes) return refuse(open, "schema", "resume");
    Stream& stream = streams_[name];
    if (!open.resume_token) {
      stream = {};
      stream.wrong = options_.wrong;
    } else {
      if (!options_.refusal.empty() && options_.refusals-- > 0) {
        ++refused_;
        return refuse(open, options_.refusal, "");
      }
      if (options_.silent-- > 0) return;
      if (!options_.forgets && !fits(open, stream)) return refuse(open, "conflict", "resume");
      stream.shown = *open.resume_token;
      if (options_.forgets) open_anew(open, stream);
    }
    stream.used = false;
    stream.peer = router_.peer();
    stream.resumes = open.resume && options_.knows_resume;
    stream.credit = static_cast<std::int64_t>(options_.credit);
    names_[open.stream] = name;
    const std::string token = stream.resumes ? token_of(++stream.tokens) : "";
    client_protocol::Ready ready{.stream = open.stream,
                                 .id = name,
                                 .pipeline = "default",
                                 .frames = stream.frames,
                                 .frame_bytes = 2,
                                 .commands = stream.commands,
                                 .keep = options_.keep,
                                 .resume = token};
    if (open.resume_token) ready.resumed = !options_.forgets;
    router_.reply(ready);
    router_.reply(client_protocol::Credit{.stream = open.stream, .frames = options_.credit});
    --stream.wrong;
    for (std::uint64_t n = open.n.value_or(0); n < stream.first + stream.log.size(); ++n)
      send(open.stream, stream, n);
  }

  bool fits(const client_protocol::Open& open, const Stream& stream) {
    const std::string_view token = *open.resume_token;
    if (token != token_of(stream.tokens) && (stream.used || token != stream.shown))
      return problems_.emplace_back("an old token"), false;
    if (open.n < stream.acked || open.n > stream.first + stream.log.size())
      return problems_.emplace_back("n"), false;
    if (open.place->frames > stream.frames || open.place->commands > stream.commands)
      return problems_.emplace_back("place"), false;
    return true;
  }

  void open_anew(const client_protocol::Open& open, Stream& stream) {
    const int tokens = stream.tokens;
    stream = {};
    stream.tokens = tokens;
    stream.frames = open.place->frames;
    stream.commands = open.place->commands;
    stream.point = *open.place;
    stream.acked = stream.first = *open.n;
    stream.have = *open.have;
  }

  void refuse(const client_protocol::Open& open, std::string_view code,
              std::string_view parameter) {
    router_.reply(client_protocol::Error{
        .stream = open.stream, .code = code, .message = "no", .parameter = parameter});
  }

  void receive_frames(const client_protocol::Frames& frames, Stream& stream) {
    const std::string_view bytes = text_in(frames.bytes);
    if (bytes.empty()) return;
    if (frames.at != stream.frames) problems_.push_back("at " + std::to_string(frames.at));
    if (bytes.size() % 2 != 0) return give(frames.stream, {Kept::Type::rejected, 0});
    const std::uint64_t count = bytes.size() / 2;
    if ((stream.credit -= static_cast<std::int64_t>(count)) < 0) problems_.emplace_back("credit");
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
      const std::uint64_t seq = stream.frames++;
      const std::uint64_t next = stream.frames;
      stream.places.push_back(
          {.seq = next, .frames = next, .commands = stream.commands, .begin = next});
      if (stream.places.size() > options_.lag)
        stream.point = stream.places[stream.places.size() - 1 - options_.lag];
      if (seq >= stream.have)
        give(frames.stream,
             {Kept::Type::result, seq, std::string(bytes.substr(at, 2)), stream.point});
    }
    stream.credit += static_cast<std::int64_t>(count);
    router_.reply(client_protocol::Credit{.stream = frames.stream, .frames = count});
  }

  void give(std::uint64_t number, Kept kept) {
    Stream& stream = streams_[names_[number]];
    stream.log.push_back(std::move(kept));
    send(number, stream, stream.first + stream.log.size() - 1);
  }

  void send(std::uint64_t number, const Stream& stream, std::uint64_t n) {
    namespace cp = client_protocol;
    const Kept& kept = stream.log[n - stream.first];
    std::optional<std::uint64_t> shown;
    if (stream.resumes) shown = stream.wrong >= 0 ? n + 1 : n;
    switch (kept.type) {
      case Kept::Type::result: {
        cp::Result result{.stream = number,
                          .seq = kept.seq,
                          .kind = Answer::Kind::text,
                          .data = bytes_in(kept.text)};
        if (shown) result.number = {.n = *shown, .point = kept.point};
        return router_.reply(result);
      }
      case Kept::Type::message:
        return router_.reply(cp::Message{
            .stream = number, .kind = Answer::Kind::json, .data = bytes_in(kept.text), .n = shown});
      case Kept::Type::flushed:
        return router_.reply(cp::Flushed{
            .stream = number, .mark = std::stoull(kept.text), .n = shown, .seq = kept.seq});
      case Kept::Type::rejected:
        return router_.reply(cp::Rejected{
            .stream = number, .code = "values", .message = "half a frame", .n = shown});
      case Kept::Type::closed:
        return router_.reply(
            cp::Closed{.stream = number, .frames = kept.seq, .chunks = 1, .n = shown});
    }
  }

  Options options_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::string, Stream> streams_;
  std::vector<std::string> problems_;
  std::atomic<int> opened_{0}, plain_{0}, refused_{0}, finished_{0};
  std::atomic<std::uint64_t> acked_{0};
  Service router_;  // the last member: its thread ends before the members that it uses
};

}  // namespace millrace::test
