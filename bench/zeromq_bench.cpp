// SPDX-License-Identifier: Apache-2.0
// Measures the ZeroMQ transport from a client's socket to the chunker, both in this process. First
// a flood of packets from 64 streams over one connection, alternating with a ROUTER that drops
// them. Then packets at a steady rate, which contain the time when they were sent.
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

#include "bench/options.h"
#include "bench/paired_runs.h"
#include "bench/quantiles.h"
#include "load/streams/histogram.h"
#include "streams/stream.h"
#include "transport/sessions/zeromq/zeromq_server.h"

using namespace millrace;
using namespace millrace::bench;
namespace cp = client_protocol;

namespace {

constexpr std::uint64_t streams = 64;
constexpr std::size_t packet_frames = 1600;  // 100 ms at 16 kHz, s16 mono
constexpr std::size_t packet_bytes = packet_frames * 2;
constexpr std::uint64_t frames_limit = 80'000;  // 5 s, the default

// A stream whose rows are done at once. Rows are whole packets.
class ImmediateStream final : public StreamInput, StreamHost {
 public:
  ImmediateStream(ClientOutput& output, StreamStats& stats, BlockPool& blocks,
                  std::uint32_t& chosen_size, load::Histogram& latencies)
      : latencies_(latencies),
        stream_({.format = format_of(SampleFormat::s16le, {}),
                 .chunk = {.spec = {.size = packet_frames}},
                 .frames_limit = frames_limit},
                {.host = *this, .blocks = blocks, .stats = stats, .chosen_size = chosen_size},
                output) {}

  void frames(Bytes bytes, Time now) override {
    stream_.frames(bytes, now);
    finish_rows(now);
  }
  void end(Time now) override {
    stream_.end(now);
    finish_rows(now);
  }
  void gap(std::uint64_t frames, Time now) override { stream_.gap(frames, now); }
  void post(std::string_view data, Time now) override { stream_.post(data, now); }
  void set(std::string_view options, Time now) override { stream_.set(options, now); }
  void reject(ErrorCode code, std::string_view why, std::uint64_t frames, Time now) override {
    stream_.reject(code, why, frames, now);
  }
  void fail(ErrorCode code, std::string_view why, Time now) override {
    stream_.fail(code, why, now);
  }
  void disconnected(ConnectionEnd how, Time now) override { stream_.disconnected(how, now); }
  void written(std::size_t results, Time now) override { stream_.written(results, now); }
  std::uint64_t credit() const override { return stream_.credit(); }
  void release(Time) override { delete this; }
  void flush(std::optional<std::uint64_t>, Time) override {}
  void reset(Time) override {}
  void drain(Time) override {}
  void acknowledge(std::uint64_t, Time) override {}
  void reject_command(ErrorCode, std::string_view, Time) override {}
  bool overrun() const override { return false; }
  bool has_ended() const override { return stream_.has_ended(); }
  void tick(Time) override {}

 private:
  void add(StreamId, ReadyRow row) override {
    ++cut_;
    if (!row.row.has_frames()) return;
    std::int64_t sent = 0;
    std::memcpy(&sent, row.window[0].data(), sizeof sent);
    latencies_.add(Clock::now() - from_wire(sent));
  }
  void finish_rows(Time now) {
    for (; done_ < cut_; ++done_) {
      stream_.batched(done_, now);
      stream_.done({.seq = done_}, now);
    }
  }

  load::Histogram& latencies_;
  std::uint64_t cut_ = 0, done_ = 0;  // rows
  Stream stream_;
};

// The ZeroMQ transport on its own thread.
class Service final : StreamAdmission {
 public:
  Service() {
    server_.start();
    scope_.start();
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~Service() {
    context_.stop();
    thread_.join();
    scope_.stop();
    context_.restart();
    context_.poll();
  }
  std::uint16_t port() const { return server_.port(); }
  load::Histogram latencies;  // read it only after the clients have ended

 private:
  Result<StreamHandle, RequestError> open(StreamRequest, const ClientIdentity&,
                                          ClientOutput& output) override {
    output.ready({.stream = "s", .pipeline = "default", .frame_bytes = 2});
    return StreamHandle(new ImmediateStream(output, stats_, blocks_, chosen_size_, latencies));
  }

  net::io_context context_{1};
  ConnectionLimits limits_;
  TransportStats transport_stats_;
  SessionScope scope_{context_.get_executor(), limits_, transport_stats_};
  StreamStats stats_;
  std::uint32_t chosen_size_ = 0;
  BlockPool blocks_{FrameBuffer::block_bytes(2, packet_frames), 1000, stats_.buffer};
  ClientGate gate_{.sockets = Budget(100)};
  ZeromqServer server_{scope_, {.endpoint = "tcp://127.0.0.1:0"}, *this, gate_};
  std::jthread thread_;
};

// One DEALER with all streams, which keeps to their credit.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::sndhwm, 256);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect("tcp://127.0.0.1:" + std::to_string(port));
  }

  void open() {
    for (std::uint64_t i = 0; i < streams; ++i)
      send_message(encoder_.encode(cp::Open{.stream = i}));
  }
  // Sends packet number `n`; the streams take turns.
  void send(std::uint64_t n, bool with_credit) {
    const std::uint64_t stream = n % streams, at = n / streams * packet_frames;
    while (with_credit && credit_[stream] < packet_frames) read(zmq::recv_flags::none);
    credit_[stream] -= packet_frames;
    const std::int64_t now = to_wire(Clock::now());
    std::memcpy(packet_.data(), &now, sizeof now);
    send_message(encoder_.encode(cp::Frames{.stream = stream, .at = at, .bytes = packet_}));
  }
  // Ends the streams and waits until they are closed: every packet was cut into rows.
  void end() {
    for (std::uint64_t i = 0; i < streams; ++i) send_message(encoder_.encode(cp::End{.stream = i}));
    while (closed_ < streams) read(zmq::recv_flags::none);
  }
  // Number of frames that the closed streams have received.
  std::uint64_t frames() const { return frames_; }
  zmq::socket_t& socket() { return socket_; }

 private:
  void send_message(Bytes message) {
    (void)socket_.send(zmq::const_buffer(message.data(), message.size()), zmq::send_flags::none);
  }
  void read(zmq::recv_flags flags) {
    zmq::message_t message;
    if (!socket_.recv(message, flags)) return;
    const auto decoded =
        decoder_.to_client({static_cast<const std::byte*>(message.data()), message.size()});
    if (!decoded) throw std::runtime_error("no message");
    if (const auto* credit = std::get_if<cp::Credit>(&*decoded))
      credit_[credit->stream] += credit->frames;
    if (const auto* closed = std::get_if<cp::Closed>(&*decoded))
      ++closed_, frames_ += closed->frames;
    if (std::holds_alternative<cp::Rejected>(*decoded) ||
        std::holds_alternative<cp::Error>(*decoded))
      throw std::runtime_error("refused");
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  cp::Encoder encoder_;
  cp::Decoder decoder_{1 << 16};
  std::vector<std::byte> packet_ = std::vector<std::byte>(packet_bytes);
  std::array<std::uint64_t, streams> credit_{};
  std::uint64_t closed_ = 0, frames_ = 0;
};

double rate(std::uint64_t messages, Time begin) {
  return static_cast<double>(messages) /
         std::chrono::duration<double>(Clock::now() - begin).count();
}

double flood(std::uint64_t messages) {
  Service service;
  ClientIdentity client(service.port());
  client.open();
  const Time begin = Clock::now();
  for (std::uint64_t n = 0; n < messages; ++n) client.send(n, true);
  client.end();
  if (client.frames() != messages * packet_frames) throw std::runtime_error("frames are missing");
  return rate(messages, begin);
}

// The control: a ROUTER on its own thread that only reads both parts of each message.
class Control {
 public:
  explicit Control(std::uint64_t messages) : router_(context_, zmq::socket_type::router) {
    router_.set(zmq::sockopt::rcvhwm, 256);
    router_.bind("tcp://127.0.0.1:0");
    thread_ = std::jthread([this, messages] {
      zmq::message_t name, body;
      for (std::uint64_t n = 0; n < messages; ++n) {
        (void)router_.recv(name);
        (void)router_.recv(body);
        latencies.add(Clock::now() - sent_at(body));
      }
    });
  }
  std::uint16_t port() {
    const std::string endpoint = router_.get(zmq::sockopt::last_endpoint);
    return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
  }
  void join() { thread_.join(); }
  load::Histogram latencies;

 private:
  // A Frames message ends with the packet.
  static Time sent_at(const zmq::message_t& message) {
    std::int64_t sent = 0;
    std::memcpy(&sent,
                static_cast<const std::byte*>(message.data()) + message.size() - packet_bytes,
                sizeof sent);
    return from_wire(sent);
  }

  zmq::context_t context_;
  zmq::socket_t router_;
  std::jthread thread_;
};

double control_flood(std::uint64_t messages) {
  Control control(messages);
  ClientIdentity client(control.port());
  const Time begin = Clock::now();
  for (std::uint64_t n = 0; n < messages; ++n) client.send(n, false);
  control.join();
  return rate(messages, begin);
}

// Sends each packet when it is due.
void send_paced(Client& client, std::uint64_t messages, bool with_credit) {
  net::io_context context(1);
  Timer timer(context);
  Time due = Clock::now();
  for (std::uint64_t n = 0; n < messages; ++n, due += std::chrono::microseconds(100)) {
    timer.expires_at(due);
    timer.wait();
    client.send(n, with_credit);
  }
}

void paced(std::uint64_t messages) {
  Service service;
  ClientIdentity client(service.port());
  client.open();
  send_paced(client, messages, true);
  client.end();
  print_row("to the chunker", service.latencies);
}

void control_paced(std::uint64_t messages) {
  Control control(messages);
  ClientIdentity client(control.port());
  send_paced(client, messages, false);
  control.join();
  print_row("control: read", control.latencies);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t messages = 200'000;
  int runs = 9;
  double seconds = 5;
  bool json = false;
  Options("Measure packets over ZeroMQ: packets per second, and latency until they are cut")
      .add("--messages", messages, "Messages of a flood run")
      .add("--runs", runs, "Runs of each measurement, in turn")
      .add("--seconds", seconds, "Seconds at 10 000 packets per second")
      .flag("--json", json, "Print only the flood, as a line of JSON")
      .parse(argc, argv);
  try {
    std::vector<double> ours, bare;
    for (int i = 0; i < runs; ++i) {
      bare.push_back(control_flood(messages));
      ours.push_back(flood(messages));
    }
    if (json) {
      std::printf("%s\n", json_of(ours, bare).c_str());
      return 0;
    }
    std::printf("flood: %.0f packets/s, control %.0f, %.0f %% of it\n", median(ours), median(bare),
                100 * median(ours) / median(bare));
    print_heading("us, since a packet was sent");
    for (int i = 0; i < 3; ++i) {
      control_paced(static_cast<std::uint64_t>(10'000 * seconds));
      paced(static_cast<std::uint64_t>(10'000 * seconds));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zeromq_bench: %s\n", error.what());
    return 1;
  }
}
