// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/resend_buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "schemas/json_commands.h"

using namespace millrace;
using Words = std::vector<std::string>;

namespace {

// The messages that can be sent now: frames, or the text of a command.
Words sent_of(ResendBuffer& buffer, std::size_t most = 1000) {
  Words words;
  for (auto next = buffer.next(); next && words.size() < most;) {
    words.push_back(next->command ? to_json(*next->command) : std::string(next->frames));
    (void)buffer.sent();
    next = words.size() < most ? buffer.next() : std::nullopt;
  }
  return words;
}

const std::string flush = R"({"type":"flush"})", end = R"({"type":"end"})",
                  gap = R"({"type":"gap","frames":5})";

struct BufferFixture {
  BufferFixture() { buffer.keep({.frames = 0, .frame_bytes = 2, .most = 8}); }
  void add(const std::string& frames) { buffer.add(frames); }
  void add(ClientMessage command) { buffer.add(std::move(command)); }
  bool acknowledge(std::uint64_t frames, std::uint64_t commands = 0) {
    return buffer.acknowledge({.seq = ++seq, .frames = frames, .commands = commands});
  }
  // What is sent again if the service has this much.
  Words again(std::uint64_t frames, std::uint64_t commands) {
    REQUIRE(buffer.resume(frames, commands));
    return sent_of(buffer);
  }
  ResendBuffer buffer{false};
  std::uint64_t seq = 0;
};

}  // namespace

TEST_CASE_METHOD(BufferFixture, "what the service has not received is sent again in order") {
  add("aabb");
  add(client_message::Flush{});
  add("ccdd");
  CHECK(sent_of(buffer) == Words{"aabb", flush, "ccdd"});
  CHECK(buffer.all_sent());
  CHECK(again(0, 0) == Words{"aabb", flush, "ccdd"});
  CHECK(again(1, 0) == Words{"bb", flush, "ccdd"});
  CHECK(again(2, 0) == Words{flush, "ccdd"});
  CHECK(again(2, 1) == Words{"ccdd"});
  CHECK(again(3, 1) == Words{"dd"});
  CHECK(again(4, 1).empty());
  CHECK(buffer.all_sent());
}

TEST_CASE_METHOD(BufferFixture, "half a frame is sent again with its frame also behind a command") {
  add("aab");
  add(client_message::Flush{});
  add("bcc");
  CHECK(sent_of(buffer) == Words{"aab", flush, "bcc"});
  CHECK(again(1, 0) == Words{"b", flush, "bcc"});
  CHECK(again(1, 1) == Words{"b", "bcc"});
  CHECK(again(2, 1) == Words{"cc"});
  CHECK(acknowledge(1, 1));
  CHECK(again(1, 1) == Words{"b", "bcc"});
}

TEST_CASE_METHOD(BufferFixture, "half a frame before a gap or the end is dropped with it") {
  add("aab");
  add(client_message::Gap{5});
  add("ccd");
  add(client_message::End{});
  CHECK(sent_of(buffer) == Words{"aab", gap, "ccd", end});
  CHECK(again(1, 0) == Words{"b", gap, "ccd", end});
  CHECK(again(6, 1) == Words{"ccd", end});
  CHECK(again(7, 1) == Words{"d", end});
  CHECK(again(7, 2).empty());
  CHECK_FALSE(buffer.resume(8, 2));
}

TEST_CASE_METHOD(BufferFixture, "what is acknowledged is no longer kept and sending can continue") {
  add("aabbccddeeffgghhiijj");
  CHECK(sent_of(buffer) == Words{"aabbccddeeffgghh"});
  CHECK_FALSE(buffer.all_sent());
  CHECK(acknowledge(1));
  CHECK(sent_of(buffer) == Words{"ii"});
  CHECK(acknowledge(9));
  CHECK(sent_of(buffer) == Words{"jj"});
  CHECK(again(9, 0) == Words{"jj"});
  CHECK_FALSE(buffer.resume(8, 0));
  CHECK_FALSE(buffer.resume(11, 0));
}

TEST_CASE_METHOD(BufferFixture, "gaps and commands are sent though the most frames are kept") {
  add(client_message::Gap{5});
  add("aabbccddeeffgghh");
  add(client_message::Flush{});
  add("ii");
  CHECK(sent_of(buffer) == Words{gap, "aabbccddeeffgghh", flush});
  CHECK(acknowledge(5, 1));
  CHECK(sent_of(buffer).empty());
  CHECK(acknowledge(6, 1));
  CHECK(sent_of(buffer) == Words{"ii"});
}

TEST_CASE_METHOD(BufferFixture, "an acknowledgement right after a new connection gives room") {
  for (const char* frame : {"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh"}) add(frame);
  add("iijj");
  CHECK(sent_of(buffer).size() == 8);
  REQUIRE(buffer.resume(8, 0));
  CHECK(acknowledge(6));
  CHECK(sent_of(buffer) == Words{"iijj"});
}

TEST_CASE_METHOD(BufferFixture, "nothing is kept after too many bytes of commands") {
  const std::string longest = "\"" + std::string(ResendBuffer::most_command_bytes / 3, 'x') + "\"";
  const auto send = [&] {
    add(client_message::Message{longest});
    CHECK(sent_of(buffer).size() == 1);
  };
  send();
  send();
  CHECK(acknowledge(0, 1));
  send();
  CHECK(buffer.keeps());
  CHECK(again(0, 2).size() == 1);
  send();
  CHECK_FALSE(buffer.keeps());
  add("aabb");
  add(client_message::End{});
  CHECK(sent_of(buffer).size() == 2);
  CHECK(buffer.has_ended());
  CHECK(acknowledge(2, 4));
}

TEST_CASE_METHOD(BufferFixture,
                 "an older acknowledgement does nothing, one of the future is wrong") {
  add("aabb");
  add(client_message::Flush{});
  CHECK(sent_of(buffer, 1) == Words{"aabb"});
  CHECK_FALSE(acknowledge(3));
  CHECK_FALSE(acknowledge(1, 1));
  CHECK(sent_of(buffer) == Words{flush});
  CHECK(acknowledge(2, 1));
  CHECK(acknowledge(1, 1));
  CHECK(buffer.point().frames == 2);
}

TEST_CASE_METHOD(BufferFixture, "keepalives are not counted") {
  add(client_message::Keepalive{});
  add(client_message::Flush{});
  (void)sent_of(buffer);
  CHECK(again(0, 1).empty());
  CHECK_FALSE(buffer.resume(0, 2));
}

TEST_CASE_METHOD(BufferFixture, "the options of acknowledged changes are merged") {
  add(client_message::Set{R"({"a":1,"b":1})"});
  add(client_message::Flush{});
  add(client_message::Set{R"({"b":2})"});
  add(client_message::Set{R"({"c":3})"});
  (void)sent_of(buffer);
  CHECK(buffer.options().empty());
  CHECK(acknowledge(0, 3));
  CHECK(buffer.options() == R"({"a":1,"b":2})");
}

TEST_CASE_METHOD(BufferFixture, "a change that would make the options too long is not merged") {
  add(client_message::Set{R"({"a":1})"});
  add(client_message::Set{R"({"b":")" + std::string(longest_options, 'x') + "\"}"});
  (void)sent_of(buffer);
  CHECK(acknowledge(0, 2));
  CHECK(buffer.options() == R"({"a":1})");
}

TEST_CASE("the options of the open count for that length") {
  ResendBuffer buffer(false, R"({"c":")" + std::string(longest_options - 20, 'x') + "\"}");
  buffer.keep({.frames = 0, .frame_bytes = 2, .most = 8});
  buffer.add(ClientMessage(client_message::Set{R"({"a":1})"}));
  buffer.add(ClientMessage(client_message::Set{R"({"b":22222222})"}));
  (void)sent_of(buffer);
  CHECK(buffer.acknowledge({.seq = 1, .frames = 0, .commands = 2}));
  CHECK(buffer.options() == R"({"a":1})");
}

TEST_CASE("each packet is one frame and is sent whole") {
  ResendBuffer buffer(true);
  buffer.keep({.frames = 0, .frame_bytes = 0, .most = 2});
  const std::string longest(61'298, 'x');
  for (const auto& packet : {std::string("a"), longest, std::string("c")}) buffer.add(packet);
  CHECK(sent_of(buffer) == Words{"a", longest});
  REQUIRE(buffer.resume(1, 0));
  CHECK(sent_of(buffer) == Words{longest});
  CHECK(buffer.acknowledge({.seq = 1, .frames = 1}));
  CHECK(sent_of(buffer) == Words{"c"});
}

TEST_CASE("without a service that resumes, nothing is kept and each entry is reported once") {
  ResendBuffer buffer(false);
  buffer.add(std::string(70'000, 'x'));
  buffer.add(ClientMessage(client_message::Flush{}));
  std::vector<std::size_t> sizes;
  int whole = 0;
  while (const auto next = buffer.next()) {
    sizes.push_back(next->frames.size());
    whole += buffer.sent() != nullptr;
  }
  CHECK(sizes == std::vector<std::size_t>{32768, 32768, 4464, 0});
  CHECK(whole == 2);
}

namespace {

// What a service has received, as the protocol counts it. Half a frame is forgotten with the
// connection, and dropped at a gap and at the end.
struct ServiceModel {
  explicit ServiceModel(bool packets) : packets(packets) {}

  void receive(const ResendBuffer::Next& next) {
    if (!next.command) {
      if (packets) return frame(std::string(next.frames));
      for (const char byte : next.frames)
        if ((half += byte).size() == 3) frame(std::exchange(half, {}));
      return;
    }
    all += to_json(*next.command);
    ++commands;
    if (const auto* lost = std::get_if<client_message::Gap>(next.command)) frames += lost->frames;
    if (std::holds_alternative<client_message::Gap>(*next.command)) half.clear();
    points.push_back({points.size(), frames, commands});
  }
  void frame(const std::string& bytes) {
    all += "[" + bytes + "]";
    ++frames;
    points.push_back({points.size(), frames, commands});
  }
  void lose_connection() { half.clear(); }

  bool packets;
  std::string all, half;
  std::uint64_t frames = 0, commands = 0;
  std::vector<ResumePoint> points{{}};  // each place in the stream so far
};

class Run {
 public:
  Run(unsigned seed, bool packets)
      : random_(seed), buffer_(packets), service_(packets), whole_(packets) {
    buffer_.keep({.frames = 0, .frame_bytes = 3, .most = 12});
  }

  void step() {
    switch (draw(0, 9)) {
      case 0:
      case 1:
      case 2: return add_frames();
      case 3: return add_command();
      case 4: return resume();
      case 5: {
        acked_ = draw(static_cast<int>(acked_), static_cast<int>(service_.points.size()) - 1);
        REQUIRE(buffer_.acknowledge(service_.points[acked_]));
        return;
      }
      default: return send(draw(0, 3) > 0);
    }
  }

  // The rest arrives.
  void finish() {
    do {
      REQUIRE(buffer_.acknowledge(service_.points.back()));
      resume();
      for (int i = 0; i < 100; ++i) send(true);
    } while (!buffer_.all_sent());
    for (const auto& message : sent_) whole_.receive(view(message));
    CHECK(service_.all == whole_.all);
    CHECK(service_.frames == whole_.frames);
  }

 private:
  static ResendBuffer::Next view(const StreamPipe::Queued& queued) {
    if (const auto* command = std::get_if<ClientMessage>(&queued))
      return {.frames = {}, .command = command};
    return {.frames = std::get<std::string>(queued)};
  }
  void add(StreamPipe::Queued queued) {
    sent_.push_back(queued);
    buffer_.add(std::move(queued));
  }
  void add_frames() {
    std::string bytes;
    for (int i = draw(service_.packets, 10); i > 0; --i) bytes += static_cast<char>(draw('a', 'z'));
    add(std::move(bytes));
  }
  void add_command() {
    switch (draw(0, 2)) {
      case 0:
        return add(ClientMessage(client_message::Flush{static_cast<std::uint64_t>(draw(0, 9))}));
      case 1:
        return add(ClientMessage(client_message::Gap{static_cast<std::uint64_t>(draw(1, 20))}));
      default: return add(ClientMessage(client_message::Message{std::to_string(draw(0, 9))}));
    }
  }
  // Once a message is lost, the later ones of this connection are lost too.
  void send(bool arrives) {
    const auto next = buffer_.next();
    if (!next) return;
    lost_ |= !arrives;
    if (!lost_) service_.receive(*next);
    (void)buffer_.sent();
  }
  void resume() {
    lost_ = false;
    service_.lose_connection();
    REQUIRE(buffer_.resume(service_.frames, service_.commands));
  }
  int draw(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }

  std::minstd_rand random_;
  ResendBuffer buffer_;
  ServiceModel service_, whole_;
  std::vector<StreamPipe::Queued> sent_;
  std::size_t acked_ = 0;
  bool lost_ = false;
};

}  // namespace

TEST_CASE("over any losses of the connection the service receives everything once, in order") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Run run(seed, seed % 2 == 0);
    for (int i = 0; i < 200; ++i) run.step();
    run.finish();
  }
}
