// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "schemas/client_codec.h"
#include "streams/stream.h"
#include "tests/support/quiet_stream.h"
#include "transport/sessions/zeromq/client_peer.h"

namespace millrace::test {

namespace cp = client_protocol;
using Lines = std::vector<std::string>;

// "result 7 0 text", "credit 7 100", "error 7 conflict id", "error - schema" …
struct LineOf {
  std::string operator()(const cp::Result& m) const {
    return line("result", m.stream, m.seq,
                std::string_view(reinterpret_cast<const char*>(m.data.data()), m.data.size()));
  }
  std::string operator()(const cp::Ready& m) const {
    std::string ready = line("ready", m.stream, m.id, m.pipeline, m.frames, m.frame_bytes);
    if (!m.resume.empty()) ready += line("", "keep", m.keep, m.resume);
    if (m.resumed) ready += line("", *m.resumed ? "resumed" : "anew", m.commands);
    return ready;
  }
  std::string operator()(const cp::Flushed& m) const { return line("flushed", m.stream, m.mark); }
  std::string operator()(const cp::Rejected& m) const {
    return line("rejected", m.stream, m.code, m.frames);
  }
  std::string operator()(const cp::Error& m) const {
    std::string said = m.stream ? line("error", *m.stream, m.code) : line("error", "-", m.code);
    if (!m.parameter.empty()) said += line("", m.parameter);
    if (m.retry_after) said += line("", "after", m.retry_after->count());
    return said;
  }
  std::string operator()(const cp::Closed& m) const {
    return line("closed", m.stream, m.frames, m.chunks);
  }
  std::string operator()(const cp::Credit& m) const { return line("credit", m.stream, m.frames); }
  std::string operator()(const cp::Message& m) const {
    return line("message", m.stream, m.number, m.seq,
                std::string_view(reinterpret_cast<const char*>(m.data.data()), m.data.size()));
  }
  std::string operator()(const cp::Goaway& m) const { return line("goaway", m.stream); }
  std::string operator()(const cp::Ack& m) const {
    const ResumePoint& at = m.place;
    return line("ack", m.stream, at.seq, at.frames, at.commands, at.begin, at.skip);
  }

  template <class... Parts>
  static std::string line(std::string_view first, const Parts&... parts) {
    std::ostringstream out;
    out << first;
    ((out << ' ' << parts), ...);
    return std::move(out).str();
  }
};

// The text of an error or a rejection; of another message empty.
struct TextOf {
  std::string operator()(const auto& message) const {
    if constexpr (requires { message.message; }) return std::string(message.message);
    return {};
  }
};

// The number of a message in the order of a stream that resumes.
struct NumberOf {
  std::optional<std::uint64_t> operator()(const auto& message) const {
    if constexpr (requires { message.n; }) return message.n;
    if constexpr (requires { message.number->n; })
      if (message.number) return message.number->n;
    return std::nullopt;
  }
};

// A wire to the test, which receives each message as a line.
class MemoryWire final : public PeerWire {
 public:
  Sent send(Bytes message) override {
    if (!reads || room == 0) return Sent::full;
    --room;
    taken += message.size();
    if (quiet) return Sent::accepted;
    const auto decoded = decoder_.to_client(message);
    lines.push_back(decoded ? std::visit(LineOf(), *decoded) : "no message");
    if (decoded)
      if (const auto n = std::visit(NumberOf(), *decoded)) numbers.push_back(*n);
    if (const auto* ready = decoded ? std::get_if<cp::Ready>(&*decoded) : nullptr)
      token = ready->resume;
    if (decoded)
      if (std::string said = std::visit(TextOf(), *decoded); !said.empty()) text = std::move(said);
    return Sent::accepted;
  }
  std::string address() const override { return "192.0.2.1:40000"; }
  std::uint64_t acknowledged() const override { return taken; }
  bool empty() const override { return written; }
  void wake() override { ++woken; }
  void cut() override { ++cuts; }

  Lines lines;
  std::vector<std::uint64_t> numbers;  // of the messages that have one
  std::string token;                   // of the last Ready
  std::string text;                    // of the last error or rejection
  bool reads = true;
  std::size_t room = std::numeric_limits<std::size_t>::max();  // messages
  bool written = true;      // all accepted messages are written to the socket
  bool quiet = false;       // messages are not recorded
  std::uint64_t taken = 0;  // bytes
  int woken = 0;
  int cuts = 0;

 private:
  cp::Decoder decoder_{std::size_t{1} << 24};
};

// The calls that a stream received, a line each, and the values that it returns.
struct RecordedStream {
  Lines calls;
  std::uint64_t credit = 100;
  std::size_t piece = 0;  // bytes; 0: messages are given whole
  bool overrun = false;
  bool resumes = false;
  bool ended = false;  // over an earlier connection
  bool fails = false;  // reset() throws
  bool quiet = false;  // frames() is not recorded
  std::size_t written = 0;
  ClientOutput* outbox = nullptr;
};

class RecordingStream final : public QuietStream {
 public:
  explicit RecordingStream(RecordedStream& stream) : record_(stream) {}

  void frames(Bytes bytes, Time) override {
    if (record_.quiet) return;
    say("frames " + std::to_string(bytes.size()) + " from " +
        std::to_string(static_cast<int>(bytes[0])));
  }
  std::size_t piece(Bytes message) override {
    return record_.piece > 0 ? std::min(record_.piece, message.size()) : message.size();
  }
  void flush(std::optional<std::uint64_t> mark, Time) override {
    say("flush" + (mark ? " " + std::to_string(*mark) : std::string()));
  }
  void reset(Time) override {
    if (record_.fails) throw std::length_error("too much");
    say("reset");
  }
  void gap(std::uint64_t frames, Time) override { say("gap " + std::to_string(frames)); }
  void post(std::string_view data, Time) override { say("post " + std::string(data)); }
  void set(std::string_view options, Time) override { say("set " + std::string(options)); }
  void end(Time) override { say("end"); }
  void reject_command(ErrorCode code, std::string_view message, Time) override {
    say("reject command");
    record_.outbox->rejected(code, message, 0);
  }
  void acknowledge(std::uint64_t n, Time) override { say("acknowledge " + std::to_string(n)); }
  bool outlives_connection() const override { return record_.resumes; }
  bool has_ended() const override { return record_.ended; }
  void fail(ErrorCode code, std::string_view, Time) override {
    say("failed " + std::string(name_of(code)));
  }
  void drain(Time) override { say("drain"); }
  void disconnected(ConnectionEnd how, Time) override {
    say(how == ConnectionEnd::clean ? "lost clean" : "lost");
  }
  void reject(ErrorCode code, std::string_view message, std::uint64_t frames, Time) override {
    say("reject " + std::string(name_of(code)) + " " + std::to_string(frames));
    record_.outbox->rejected(code, message, frames);
  }
  std::uint64_t credit() const override { return record_.credit; }
  bool overrun() const override { return record_.overrun; }
  void tick(Time) override { say("tick"); }
  void written(std::size_t results, Time) override { record_.written += results; }

 private:
  void say(std::string call) { record_.calls.push_back(std::move(call)); }
  RecordedStream& record_;
};

// Accepts all streams, unless `error` is set, and names them s0, s1 … Frames have two bytes; those
// of format=opus are packets.
class RecordingAdmission final : public StreamAdmission {
 public:
  Result<StreamHandle, RequestError> open(StreamRequest request, const ClientIdentity&,
                                          ClientOutput& outbox) override {
    if (error) return *error;
    requests.push_back(request);
    RecordedStream& stream = streams.emplace_back();
    stream.credit = credit;
    stream.resumes = request.resume;
    stream.ended = ended;
    stream.outbox = &outbox;
    const std::string name = "s" + std::to_string(streams.size() - 1);
    outbox.ready({.stream = name,
                  .pipeline = request.pipeline,
                  .frame_bytes = request.format == "opus" ? 0u : 2u,
                  .frames = arrived.frames,
                  .commands = arrived.commands,
                  .keep = request.resume ? 1000u : 0u,
                  .resume = request.resume ? "next.token" : "",
                  .resumed = request.resumption ? std::optional(true) : std::nullopt});
    for (std::size_t i = 0; i < kept; ++i) outbox.rejected(ErrorCode::values, "kept", 1);
    if (fails) throw std::bad_alloc();
    return StreamHandle(new RecordingStream(stream));
  }

  std::optional<std::uint32_t> thread_of(const StreamRequest& request,
                                         const ClientIdentity&) const override {
    return request.resumption ? thread : std::nullopt;
  }

  std::optional<RequestError> error;
  std::optional<std::uint32_t> thread;  // that has the streams which clients continue
  Stream::Received arrived;             // of the streams which clients continue
  std::size_t kept = 0;                 // messages that each stream gives when it is opened
  bool ended = false;                   // they have received the client's end
  bool fails = false;                   // after ready()
  std::uint64_t credit = 100;
  std::vector<StreamRequest> requests;
  std::deque<RecordedStream> streams;  // in the order of their opening
};

// A peer, its wire and the owner of its streams. The clock moves only in after().
struct PeerFixture {
  // The peer sends a message; the answers are sent at once.
  template <class Message>
  void says(const Message& message) {
    peer.received(cp::ToService(message), now);
    peer.flush(now);
  }
  void opens(std::uint64_t number) { says(cp::Open{.stream = number}); }
  // Sends frames of two bytes; the first byte of each is its position.
  void sends(std::uint64_t number, std::uint64_t at, std::size_t frames) {
    sends_bytes(number, at, 2 * frames);
  }
  void sends_bytes(std::uint64_t number, std::uint64_t at, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(at + i / 2);
    says(cp::Frames{.stream = number, .at = at, .bytes = bytes});
  }
  void offends() {
    peer.malformed(MessageFault::verify, "no message", now);
    peer.flush(now);
  }
  void result(std::size_t stream, std::string data, std::uint64_t seq = 0) {
    admission.streams[stream].outbox->result({.seq = seq}, {Answer::Kind::text, std::move(data)});
  }
  void after(Duration time) {
    now += time;
    peer.check(now);
    peer.flush(now);
  }
  Lines received() { return std::exchange(wire.lines, {}); }
  Lines calls(std::size_t stream) { return std::exchange(admission.streams[stream].calls, {}); }

  ConnectionLimits limits;
  TransportStats stats;
  cp::Encoder encoder;
  RecordingAdmission admission;
  MemoryWire wire;
  RetryTimes retry_times;
  ClientAccess access;
  PeerContext context{admission, encoder, limits, stats, retry_times, access};
  Time now{std::chrono::hours(1)};
  ClientPeer peer{wire, context, now};
};

}  // namespace millrace::test
