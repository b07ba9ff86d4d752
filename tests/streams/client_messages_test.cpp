// SPDX-License-Identifier: Apache-2.0
// Messages of the client to the worker, which rows carry.
#include <catch2/catch.hpp>
#include <string>

#include "base/message_room.h"
#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct PostedStream : LiveStream {
  explicit PostedStream(std::uint64_t limit = 1000) : LiveStream(tens, limit) {}
  void post(std::string text) { stream.post(text, now); }
  // A message that uses this many of the 1000 bytes that may wait for a row.
  void post_bytes(std::size_t bytes) { post(std::string(bytes - message_overhead, 'm')); }
};
using Carried = LiveStream::Carried;

StreamSettings shedding() {
  return {.type = {},
          .format = format_of(SampleFormat::s16le, {}),
          .chunk = {.spec = tens},
          .frames_limit = 1000,
          .longest_post = 250,
          .shed_after = std::chrono::milliseconds(160),
          .opened = at(0)};
}

}  // namespace

TEST_CASE_METHOD(PostedStream, "the next row carries a message, and a message cuts no row") {
  send(14);
  post("a");
  post("b");
  CHECK(rows().size() == 1);
  CHECK(carried().empty());
  send(6);
  CHECK(rows().back() == Rows::value_type{1, 10, 0, 10, 0, 0, 0});
  CHECK(carried() == Carried{{1, 14, "a"}, {1, 14, "b"}});
  send(10);
  CHECK_FALSE(lane.rows[2].posts);
}

TEST_CASE_METHOD(PostedStream,
                 "the row of a flush carries the messages before it, and no later one") {
  post("before");
  stream.flush(1, now);
  post("after");
  stream.flush(2, now);
  CHECK(carried() == Carried{{0, 0, "before"}, {1, 0, "after"}});
}

TEST_CASE_METHOD(PostedStream, "END and ABORT rows carry messages too") {
  post("a");
  stream.end(now);
  CHECK(lane.rows[0].row.is(flag::end));
  CHECK(carried() == Carried{{0, 0, "a"}});
  PostedStream lost;
  lost.send(10);
  lost.take(1);
  lost.post("b");
  lost.stream.disconnected(ConnectionEnd::lost, lost.now);
  CHECK(lost.lane.rows[1].row.is(flag::abort));
  CHECK(lost.carried() == Carried{{1, 10, "b"}});
}

TEST_CASE_METHOD(PostedStream, "messages that wait before the chunker keep their place") {
  send(max_ready_rows * 10 + 5);
  post("a");
  stream.flush(1, now);
  post("b");
  send(10);
  CHECK(rows().size() == max_ready_rows);
  take_and_answer(max_ready_rows);
  CHECK(carried() == Carried{{8, 85, "a"}, {9, 85, "b"}});
}

TEST_CASE_METHOD(PostedStream, "a message after the end is rejected") {
  stream.end(now);
  post("a");
  CHECK(said() == Said{"rejected unknown_stream 0"});
}

TEST_CASE_METHOD(PostedStream,
                 "messages beyond the limit are rejected until a row has taken the others") {
  for (int i = 0; i < 3; ++i) post_bytes(300);
  post_bytes(101);
  CHECK(said() == Said{"rejected too_fast 0"});
  post_bytes(100);
  CHECK(said().empty());
  stream.flush({}, now);
  CHECK(carried().size() == 4);
  post_bytes(300);
  CHECK(said().empty());
}

TEST_CASE_METHOD(PostedStream, "a message that is too long is rejected") {
  post(std::string(251, 'm'));
  CHECK(said() == Said{"rejected too_long 0"});
  post(std::string(250, 'm'));
  CHECK(said().empty());
}

TEST_CASE_METHOD(PostedStream, "a million messages without a row keep at most the limit") {
  for (int i = 0; i < 1'000'000; ++i) post("x");
  stream.end(now);
  CHECK(carried().size() == 1000 / (message_overhead + 1));
}

TEST_CASE("messages in unfinished rows count as frames: they pause the client") {
  PostedStream live(470);
  live.send(10);
  for (int i = 0; i < 3; ++i) live.post_bytes(310);
  live.stream.flush({}, live.now);
  CHECK(live.stream.paused());
  CHECK(live.stream.credit() == 0);
  live.take_and_answer(2);
  CHECK_FALSE(live.stream.paused());
  CHECK(live.stream.held_bytes() == 0);
  CHECK(live.stream.credit() > 0);
}

TEST_CASE("a client whose messages fill the limit can still complete the next row") {
  PostedStream live(10);
  live.post_bytes(300);
  live.stream.tick(live.now);
  CHECK_FALSE(live.stream.paused());
  CHECK(live.stream.credit() >= 10);
}

TEST_CASE_METHOD(PostedStream, "messages for the next row do not keep the client from sending it") {
  send(10);
  take(1);
  for (int i = 0; i < 3; ++i) post_bytes(300);  // the worker answers the row with the next one
  CHECK_FALSE(stream.paused());
  CHECK(stream.credit() >= 10);
  send(10);
  CHECK(carried().size() == 3);
}

TEST_CASE("small messages between the frames of a slow worker's client do not pause it") {
  StreamSettings settings = shedding();
  settings.longest_post = 16 << 10;
  settings.frames_limit = 10'000;
  settings.shed_after.reset();
  LiveStream live(settings);
  live.send(max_ready_rows * 10);
  for (int i = 0; i < 100; ++i) {
    live.stream.post("1", live.now);
    live.after(std::chrono::seconds(1));
    live.send(1);
  }
  CHECK_FALSE(live.stream.paused());
  CHECK_FALSE(live.stream.overrun());
}

TEST_CASE("a stream that sheds rejects messages beyond the bound, and is not paused") {
  LiveStream live(shedding());
  live.send(max_ready_rows * 10);
  const std::string text(236, 'm');  // 300 bytes of the 1000 that may wait
  for (int i = 0; i < 4; ++i) live.stream.post(text, live.now);
  CHECK_FALSE(live.stream.paused());
  CHECK(live.said() == Said{"rejected too_fast 0"});
}

TEST_CASE("shedding keeps the messages between the frames that it drops") {
  LiveStream live(shedding());
  live.send(80);
  for (const char* text : {"a", "b"}) {
    live.send(10);
    live.stream.post(text, live.now);
  }
  live.after(std::chrono::milliseconds(200));
  CHECK(live.stats.lost[Loss::overflow].value() == 20);
  live.take_and_answer(max_ready_rows);
  live.stream.end(live.now);
  CHECK(live.carried() == LiveStream::Carried{{9, 90, "a"}, {9, 100, "b"}});
}

TEST_CASE_METHOD(PostedStream, "an eviction drops the messages that wait before the chunker") {
  send((max_ready_rows + 1) * 10);
  take(1);
  post("dropped");
  stream.evict(now);
  CHECK(said() == Said{"error no_room"});
  take_and_answer(max_ready_rows + 2);
  CHECK(lane.rows.back().row.is(flag::abort));
  CHECK(carried().empty());
  CHECK(stream.held_bytes() == 0);
}

TEST_CASE_METHOD(
    PostedStream,
    "a client that waits while it is paused loses no message, however slow the worker is") {
  std::size_t sent = 0;
  const auto send_until_paused = [&] {
    while (!stream.paused()) {
      post_bytes(300);
      ++sent;
      stream.flush({}, now);
    }
  };
  send_until_paused();
  after(std::chrono::minutes(1));  // the pause adds room for frames, not for messages
  CHECK(stream.paused());
  CHECK(sent == 4);
  while (sent < 50) {
    take_and_answer(1);
    send_until_paused();
  }
  take_and_answer(lane.rows.size() - answered);
  CHECK(carried().size() == sent);
  for (const std::string& one : said()) CHECK(one == "resume");
}

TEST_CASE_METHOD(PostedStream,
                 "a client that does not read its results is paused by its messages") {
  client.is_full = true;
  while (!stream.paused()) post_bytes(300);
  client.is_full = false;
  stream.written(0, now);
  CHECK_FALSE(stream.paused());
  stream.flush({}, now);
  CHECK(carried().size() == 3);
}

TEST_CASE_METHOD(
    PostedStream,
    "messages beyond the bound are rejected though rows come, if the client cannot be paused") {
  for (int i = 0; i < 8; ++i) {
    post_bytes(250);
    stream.flush({}, now);
  }
  CHECK(said().empty());
  post_bytes(100);
  CHECK(said() == Said{"rejected too_fast 0"});
  take_and_answer(1);
  post_bytes(250);
  CHECK(said().empty());
}

TEST_CASE_METHOD(PostedStream, "a change of options goes with the next row, as it was sent") {
  stream.set(R"({"lang":"de"})", now);
  stream.flush({}, now);
  CHECK(carried() == Carried{{0, 0, R"({"lang":"de"})"}});
  CHECK(lane.rows[0].posts->front().set);
}

TEST_CASE("options have at most 4096 bytes together") {
  StreamSettings settings = shedding();
  settings.longest_post = 16 << 10;
  settings.options = R"({"a":")" + std::string(3000, 'a') + "\"}";
  LiveStream live(settings);
  const auto set = [&](const char* key, std::size_t bytes) {
    live.stream.set("{\"" + std::string(key) + "\":\"" + std::string(bytes, 'b') + "\"}", live.now);
    return live.said();
  };
  CHECK(set("b", 1100) == Said{"rejected too_long 0"});
  CHECK(set("b", 1000).empty());
  CHECK(set("c", 100) == Said{"rejected too_long 0"});
  CHECK(set("a", 10).empty());
  CHECK(set("c", 100).empty());
  live.stream.end(live.now);
  CHECK(live.carried().size() == 3);
}
