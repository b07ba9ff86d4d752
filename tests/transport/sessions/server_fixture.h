// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/quiet_stream.h"
#include "tests/transport/http/client.h"
#include "transport/sessions/millrace_v1/millrace_v1.h"
#include "transport/sessions/stream_server.h"

namespace millrace {

// A valid upgrade.
inline std::string request(std::string target, std::string fields = {}) {
  return "GET " + target +
         " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         fields + "\r\n";
}

// Answers each message of frames with its length, and records how its streams were lost.
class EchoStream final : public test::QuietStream {
 public:
  EchoStream(ClientOutput& output, std::vector<std::string>& lost, Duration work = {})
      : output_(output), lost_(lost), work_(work) {}
  ~EchoStream() override {
    if (!ended_) lost_.emplace_back("lost");
  }

  void frames(Bytes bytes, Time) override {
    for (const Time begin = Clock::now(); Clock::now() < begin + work_;) {
    }
    output_.result({.seq = messages_++, .begin = position_, .end = position_ + bytes.size()},
                   {Answer::Kind::json, std::to_string(bytes.size())});
    position_ += bytes.size();
  }
  void flush(std::optional<std::uint64_t> mark, Time) override {
    if (mark) output_.flushed(*mark, 0);
  }
  void end(Time) override { output_.closed(position_, messages_, false); }
  void fail(ErrorCode code, std::string_view, Time) override { lost_.emplace_back(name_of(code)); }
  void disconnected(ConnectionEnd how, Time) override {
    ended_ = true;
    lost_.emplace_back(how == ConnectionEnd::clean ? "clean" : "lost");
  }

 private:
  ClientOutput& output_;
  std::vector<std::string>& lost_;
  const Duration work_;
  std::uint64_t position_ = 0;
  std::uint64_t messages_ = 0;
  bool ended_ = false;
};

class EchoAdmission final : public StreamAdmission {
 public:
  Result<StreamHandle, RequestError> open(StreamRequest request, const ClientIdentity&,
                                          ClientOutput& output) override {
    requests.push_back(request);
    if (request.pipeline == "stereo" && request.channel)
      return RequestError{.status = 415, .parameter = "channel", .message = "has 2 channels"};
    if (request.pipeline != "default" && request.pipeline != "stereo")
      return RequestError{.status = 404, .parameter = "pipeline", .message = "no such pipeline"};
    if (request.id == "full")
      return RequestError{.status = 503,
                          .message = "no room",
                          .retry_after = std::chrono::seconds(2),
                          .reason = Refusal::no_room,
                          .logged = true};
    const std::string name = request.id.empty() ? "s-1" : request.id;
    output.ready({.stream = name, .pipeline = request.pipeline, .frame_bytes = 2});
    return StreamHandle(new EchoStream(output, lost, work));
  }
  std::optional<RequestError> refusal(const StreamRequest&, const ClientIdentity&) override {
    return refuses;
  }
  std::vector<std::string> lost;
  std::vector<StreamRequest> requests;
  std::optional<RequestError> refuses;  // the answer to refusal()
  Duration work{};                      // CPU time of each message
};

// A server of echoes on a free port of the loopback, in the test's own thread.
struct ServerFixture {
  explicit ServerFixture(std::span<const PageFile> page = {}, const AddressRule& addresses = {},
                         const ProxyList& proxies = {})
      : gate{.sockets = Budget(100),
             .addresses = AddressLimits(addresses),
             .proxies = proxies,
             .origins = {"https://good.example"},
             .page = page,
             .pipelines = R"({"pipelines":[]})"} {
    scope.start();
    server.start();
  }
  ~ServerFixture() {
    server.stop_accepting();
    scope.stop();
    run(context, joined());
  }

  static Acceptor loopback(net::io_context& context) {
    const std::array contexts{&context};
    return std::move(
        listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts).front());
  }

  Task<bool> joined() {
    co_await scope.join();
    co_return true;
  }

  // Runs the context until `done`; false if that takes too long.
  template <class Done>
  bool eventually(Done done) {
    context.restart();
    for (const Time limit = Clock::now() + patience; !done();)
      if (context.run_one_until(limit) == 0) return false;
    return true;
  }

  // Sends bytes of a client, and lets the server read them.
  void deliver(Socket& client, const std::string& bytes) {
    net::write(client, net::buffer(bytes));
    const Time soon = Clock::now() + std::chrono::milliseconds(20);
    do {
      context.restart();
      context.poll();
    } while (Clock::now() < soon);
  }

  std::string send(std::string bytes) {
    return run(context, exchange(server.endpoint(), std::move(bytes)));
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  EchoAdmission admission;
  SessionScope scope{context.get_executor(), limits, stats};
  ClientGate gate;
  MillraceV1 protocol{admission};
  StreamServer server{scope, loopback(context), {&protocol}, gate};
};

}  // namespace millrace
