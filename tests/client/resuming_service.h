// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/json_commands.h"
#include "schemas/json_text.h"
#include "tests/client/scripted_service.h"
#include "transport/websocket/stream_target.h"

namespace millrace::test {

// One stream of a service that resumes streams (docs/protocol.md). Each frame of two bytes, or each
// packet, is a row, whose result has its text. Each message and each `set` is answered by a
// message.
class ResumingService final : public Host {
 public:
  struct Options {
    bool packets = false;
    std::uint64_t keep = 1000;  // frames
    std::uint64_t lag = 3;      // frames between the newest row and the place that is acknowledged
    bool forgets = false;       // loses the stream with each connection
    std::string refusal{};      // of each later connection; empty: none
    bool resumes = true;        // false: refuses the parameter `resume`, as an older service
    int silent = 0;             // the number of later connections that get no `ready`
    std::uint64_t goaway = 1 << 30;  // the row with which the service begins to stop
    int conflicts = 0;               // the number of later connections that lose the stream at once
    int wrong = 0;                   // the number of connections whose messages have wrong numbers
  };

  explicit ResumingService(Options options) : options_(std::move(options)) {}

  int connections() const { return connections_; }
  int refused() const { return refused_; }  // as Options::refusal
  std::uint64_t acked() const { return acked_; }
  // Input had arrived with the first acknowledgement. Requires: the service has ended.
  bool acked_with_input() const { return acked_with_input_; }
  int how_ended() const { return how_ended_; }  // the client's last close code; 0 without a close
  // Requires: the service has ended.
  const std::vector<std::string>& targets() const { return targets_; }
  int goaways() const { return goaways_; }
  const std::vector<std::string>& problems() const { return problems_; }

  std::string refuse(const std::string& request) override {
    targets_.push_back(target_of(request));
    const auto parsed = parse_stream_target(target_of(request));
    if (!parsed) return problem("400 Bad Request", "schema", "target");
    if (parsed->resume && !options_.resumes) return problem("400 Bad Request", "schema", "resume");
    if (!parsed->resumption) return "";
    if (!options_.refusal.empty()) {
      ++refused_;
      return options_.refusal;
    }
    constexpr std::string_view listed = "Sec-WebSocket-Protocol: millrace.v1, resume.";
    const std::size_t at = request.find(listed);
    if (at == std::string::npos) return problem("400 Bad Request", "schema", "no token");
    const std::size_t begin = at + listed.size();
    const std::string token = request.substr(begin, request.find('\r', begin) - begin);
    if (token != token_of(tokens_) && (used_ || token != shown_))
      return problem("409 Conflict", "conflict", "an old token");
    const Resumption& from = *parsed->resumption;
    if (parsed->id != "mic") return problem("400 Bad Request", "schema", "id");
    if (from.n < acked_ || from.n > first_ + log_.size())
      return problem("400 Bad Request", "schema", "n");
    if (!options_.forgets && (from.point.frames > frames_ || from.point.commands > commands_))
      return problem("400 Bad Request", "schema", "from");
    shown_ = token;
    return "";
  }

  Task<> serve(Connection& connection, std::string request) override {
    ++connections_;
    const std::uint64_t epoch = ++epoch_;
    const auto parsed = parse_stream_target(target_of(request));
    std::string ready = R"({"type":"ready","stream":"mic","pipeline":"default","frames":)";
    std::uint64_t next = 0;
    if (!parsed->resumption) {
      start();
    } else {
      if (options_.silent-- > 0) co_return;
      next = parsed->resumption->n;
      if (options_.forgets) open_anew(*parsed->resumption);
    }
    half_.clear();
    used_ = false;
    append_number(ready, frames_);
    if (parsed->resume) {
      append_number(ready += R"(,"commands":)", commands_);
      append_number(ready += R"(,"frame_bytes":)", std::uint64_t{options_.packets ? 0U : 2U});
      append_number(ready += R"(,"keep":)", options_.keep);
      if (parsed->resumption)
        ready += options_.forgets ? R"(,"resumed":false)" : R"(,"resumed":true)";
      ready += R"(,"resume":")" + token_of(++tokens_) + "\"";
    }
    ready += '}';
    co_await send_text(connection, std::move(ready));
    if (parsed->resumption && options_.conflicts-- > 0) {
      co_await send_text(connection, R"({"type":"error","code":"conflict","message":"taken"})");
      connection.close(4409, "");
      co_await connection.flushed();
      co_return;
    }
    bool goaway = false;
    while (epoch == epoch_) {
      if (frames_ > options_.goaway && !std::exchange(goaway, true)) {
        ++goaways_;
        co_await send_text(connection, R"({"type":"goaway","retry_after_ms":0})");
      }
      for (; next < first_ + log_.size(); ++next) {
        std::string text = log_[next - first_];
        const std::uint64_t n = next + (options_.wrong > 0 ? 1 : 0);
        if (parsed->resume) text.insert(text.size() - 1, ",\"n\":" + std::to_string(n));
        if (!co_await connection.send(Connection::Kind::text, text)) co_return;
      }
      if (ended_) {
        connection.close(close_codes::normal, "");
        co_await connection.flushed();
      }
      const auto received = co_await connection.receive();
      const auto* message = std::get_if<Connection::Message>(&received);
      if (const auto* end = std::get_if<Connection::Ended>(&received)) how_ended_ = end->code;
      if (!message) --options_.wrong;
      if (!message || epoch != epoch_) co_return;
      const std::uint64_t acked = acked_;
      receive(*message);
      if (acked > 0 || acked_ == 0) continue;
      const auto more = connection.next();
      if (!more) continue;
      if (const auto* end = std::get_if<Connection::Ended>(&*more)) how_ended_ = end->code;
      const auto* input = std::get_if<Connection::Message>(&*more);
      if (!input) co_return;
      acked_with_input_ = true;
      receive(*input);
    }
  }

 private:
  static std::string token_of(int number) { return "secret-" + std::to_string(number); }

  std::string problem(std::string_view status, std::string_view code, std::string_view parameter) {
    problems_.emplace_back(parameter);
    std::string body = R"({"error":{"code":")" + std::string(code) + R"(","parameter":")" +
                       std::string(parameter) + R"(","message":"no"}})";
    return "HTTP/1.1 " + std::string(status) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  void start() {
    frames_ = commands_ = first_ = 0;
    acked_ = 0;
    ended_ = false;
    log_.clear();
  }
  void open_anew(const Resumption& from) {
    frames_ = from.point.frames;
    commands_ = from.point.commands;
    have_ = from.results;
    point_ = from.point;
    places_.clear();
    first_ = from.n;
    log_.clear();
    ended_ = false;
  }

  void receive(const Connection::Message& message) {
    if (message.kind == Connection::Kind::binary) {
      used_ |= !message.bytes.empty();
      const std::string_view bytes = message.text();
      if (options_.packets && !bytes.empty()) return row(std::string(bytes.substr(0, 2)));
      for (const char byte : bytes)
        if ((half_ += byte).size() == 2) row(std::exchange(half_, {}));
      return;
    }
    used_ = true;
    const auto command = parse_client_message(message.text(), 1 << 20);
    if (!command) return;
    if (const auto* ack = std::get_if<client_message::Ack>(&*command)) {
      acked_ = ack->n;
      return;
    }
    ++commands_;
    if (const auto* flush = std::get_if<client_message::Flush>(&*command))
      log_.push_back(R"({"type":"flushed","mark":)" + std::to_string(flush->mark.value_or(0)) +
                     R"(,"seq":)" + std::to_string(frames_) + "}");
    if (const auto* gap = std::get_if<client_message::Gap>(&*command)) {
      if (!half_.empty())
        log_.emplace_back(
            R"({"type":"rejected","code":"values","message":"half a frame","frames":0})");
      half_.clear();
      frames_ += gap->frames;
    }
    if (const auto* post = std::get_if<client_message::Message>(&*command)) answer(post->data);
    if (const auto* set = std::get_if<client_message::Set>(&*command)) answer(set->options);
    if (std::holds_alternative<client_message::End>(*command)) {
      log_.push_back(R"({"type":"closed","frames":)" + std::to_string(frames_) + R"(,"chunks":1})");
      ended_ = true;
    }
  }
  void answer(const std::string& data) {
    log_.push_back(R"({"type":"message","number":0,"seq":0,"data":)" + data + "}");
  }
  void row(const std::string& text) {
    const std::uint64_t seq = frames_++;
    places_.push_back({.seq = frames_, .frames = frames_, .commands = commands_, .begin = frames_});
    if (places_.size() > options_.lag) point_ = places_[places_.size() - 1 - options_.lag];
    std::string result = R"({"type":"result","seq":)" + std::to_string(seq) + R"(,"data":")" + text;
    result += R"(","ack":[)";
    for (const std::uint64_t number : {point_.seq, point_.frames, point_.commands, point_.begin})
      append_number(result, number), result += ',';
    if (seq >= have_) log_.push_back(result + "0]}");
  }

  Options options_;
  std::string half_, shown_;
  std::uint64_t frames_ = 0, commands_ = 0, first_ = 0, have_ = 0, epoch_ = 0;
  std::atomic<std::uint64_t> acked_{0};
  std::atomic<int> how_ended_{-1};

  std::vector<std::string> log_;
  std::vector<ResumePoint> places_;
  ResumePoint point_;
  int tokens_ = 0;
  bool used_ = false, ended_ = false, acked_with_input_ = false;
  std::atomic<int> connections_{0}, refused_{0};
  int goaways_ = 0;
  std::vector<std::string> targets_, problems_;
};

}  // namespace millrace::test
