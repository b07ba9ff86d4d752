// SPDX-License-Identifier: Apache-2.0
// The messages of workers to clients, the room that they have, and the messages of clients to
// workers.
#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "base/message_room.h"
#include "schemas/worker_codec.h"
#include "tests/support/golden.h"

using namespace millrace;
using namespace millrace::worker_protocol;
using namespace std::string_literals;

namespace {

const Send sent{
    .stream = StreamId{11}, .seq = 9, .message = {Answer::Kind::json, R"({"token":"a"})"}};

auto at_the_service(const auto& message) {
  Encoder encoder;
  return Decoder(1 << 20).to_service(encoder.encode(message));
}
auto received(const Send& message) { return at_the_service(message); }
auto received(const LateAnswer& message) { return at_the_service(message); }
auto received(const Done& message) { return at_the_service(message); }
auto received(const auto& message) {
  Encoder encoder;
  return Decoder(1 << 20).to_worker(encoder.encode(message));
}
bool refused(const auto& message) {
  const auto result = received(message);
  return !result && result.error() == WireError::meaning;
}
bool refused_with(Answer answer) {
  Send message = sent;
  message.message = std::move(answer);
  return refused(message);
}

// The streams of a batch that opens two, with this room of the second one.
HandedBatch opening(std::uint32_t room) {
  HandedBatch batch;
  batch.rows = batch.width = 1;
  batch.framed = {{.stream = StreamId{1}, .size = 1}};
  batch.opened = {{StreamId{1}, 0, "a", ""}, {StreamId{2}, 1, "b", "", room}};
  return batch;
}

// A batch with messages of clients.
HandedBatch posted() {
  HandedBatch batch = opening(stream_room);
  batch.posts = {{StreamId{1}, 3, 7, R"(["a","\u0062"])", false},
                 {StreamId{2}, 0, 1ULL << 53, R"({"lang":"de"})", true}};
  return batch;
}

}  // namespace

TEST_CASE("a message of a worker is unchanged when it is written and read") {
  CHECK(std::get<Send>(*received(sent)) == sent);
  const Send bytes{.stream = {}, .seq = 0, .message = {Answer::Kind::bytes, "\0\xff"s}};
  CHECK(std::get<Send>(*received(bytes)) == bytes);
}

TEST_CASE("the messages of clients in a batch are unchanged when read") {
  CHECK(std::get<HandedBatch>(*received(posted())).posts == posted().posts);
}

TEST_CASE("messages of clients that are not what they are called are refused") {
  for (const Post& wrong :
       {Post{StreamId{1}, 0, 0, "{"}, Post{StreamId{1}, 0, 0, ""},
        Post{StreamId{1}, 0, 1ULL << 63, "1"}, Post{StreamId{1}, 1ULL << 63, 0, "1"},
        Post{StreamId{1}, 0, 0, "1", true}}) {
    HandedBatch batch = opening(stream_room);
    batch.posts = {wrong};
    CHECK(refused(batch));
  }
}

TEST_CASE("an answer that follows later is unchanged when it is written and read") {
  const Done pending{.batch = BatchId{7},
                     .answers = {{.kind = Answer::Kind::pending, .endpoint = true}, {}},
                     .mark_answers = {{.kind = Answer::Kind::pending}},
                     .taken = {},
                     .done = {}};
  CHECK(std::get<Done>(*received(pending)) == pending);
  const LateAnswer late{StreamId{11}, 9, {Answer::Kind::bytes, "\0\xff"s, true}};
  CHECK(std::get<LateAnswer>(*received(late)) == late);
  const LateAnswer none{StreamId{11}, 9, {}};
  CHECK(std::get<LateAnswer>(*received(none)) == none);
  const LateAnswer wrong{StreamId{11}, 9, {Answer::Kind::json, "{"}};
  CHECK(std::get<LateAnswer>(*received(wrong)).answer.kind == Answer::Kind::error);
}

TEST_CASE("an answer is pending only in Done, and then without data") {
  CHECK(refused(LateAnswer{StreamId{1}, 0, {Answer::Kind::pending}}));
  CHECK(refused(LateAnswer{StreamId{1}, 0, {static_cast<Answer::Kind>(6)}}));
  CHECK(refused(Done{.batch = BatchId{1},
                     .answers = {{Answer::Kind::pending, "x"}},
                     .mark_answers = {},
                     .taken = {},
                     .done = {}}));
}

TEST_CASE("room is unchanged when it is written and read") {
  const Room room{.stream = StreamId{11}, .bytes = stream_room};
  CHECK(std::get<Room>(*received(room)) == room);
}

TEST_CASE("the room of a stream that was taken over is unchanged when it is read") {
  CHECK(std::get<HandedBatch>(*received(opening(1000))).opened == opening(1000).opened);
  CHECK(std::get<HandedBatch>(*received(opening(stream_room))).opened ==
        opening(stream_room).opened);
  CHECK(refused(opening(stream_room + 1)));
}

TEST_CASE("messages of workers, their room, and messages of clients equal the golden files") {
  Encoder encoder;
  const auto check = [&](const char* name, const auto& message) {
    const Bytes bytes = encoder.encode(message);
    CHECK(copy_of(bytes) == golden(name, bytes));
  };
  check("worker_send.bin", sent);
  check("worker_late_answer.bin", LateAnswer{StreamId{11}, 9, {Answer::Kind::text, "late", true}});
  check("worker_batch_posts.bin", posted());
  check("worker_room.bin", Room{.stream = StreamId{11}, .bytes = 16384});
}

TEST_CASE("a message of a worker with impossible values is refused for its meaning") {
  CHECK(refused_with({Answer::Kind::json, "{"}));
  CHECK(refused_with({Answer::Kind::text, "\xff"}));
  CHECK(refused_with({Answer::Kind::error, "no"}));
  CHECK(refused_with({}));
  CHECK(refused_with({Answer::Kind::bytes, std::string(longest_message + 1, 'm')}));
  Send beyond = sent;
  beyond.seq = 1ULL << 63;
  CHECK(refused(beyond));
  CHECK(refused(Room{StreamId{1}, stream_room + 1}));
}
