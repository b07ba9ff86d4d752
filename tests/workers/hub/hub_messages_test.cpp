// SPDX-License-Identifier: Apache-2.0
// Messages of workers to clients, through the hub.
#include <catch2/catch.hpp>

#include "base/message_room.h"
#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct MessagesOfHub : HubUnderTest {
  // A worker that has the first row of stream 1.
  Link& worker_with_row() {
    Link& link = attach();
    open(1);
    row(1, 0, false);
    (void)link.receive<HandedBatch>();
    return link;
  }
  void send(Link& link, std::uint64_t stream, std::uint64_t seq, std::size_t bytes = 2) {
    hub.receive(link, Send{StreamId{stream}, seq, {Answer::Kind::text, std::string(bytes, 'm')}});
    run();
  }
};

}  // namespace

TEST_CASE_METHOD(MessagesOfHub,
                 "a message of a worker goes to its stream while its batch computes") {
  Link& link = worker_with_row();
  send(link, 1, 0);
  CHECK(returned() == "1 at 0 mm");
  CHECK(stats.messages[MessageStatus::ok].value() == 1);
  done(link, BatchId{1}, texts({"yes"}));
  CHECK(returned() == "1.0=yes");
}

TEST_CASE_METHOD(MessagesOfHub, "the worker has room again when its messages were written") {
  Link& link = worker_with_row();
  send(link, 1, 0, longest_message);
  hub.free_room(StreamId{1}, longest_message + message_overhead);
  run();
  CHECK(link.receive<Room>() == Room{StreamId{1}, longest_message + message_overhead});
  send(link, 1, 0, longest_message);
  CHECK(stats.messages[MessageStatus::ok].value() == 2);
}

TEST_CASE_METHOD(MessagesOfHub, "the answer to a pending row follows its batch") {
  Link& link = worker_with_row();
  done(link, BatchId{1}, {{Answer::Kind::pending}});
  CHECK(returned().empty());
  const auto late = [&] {
    hub.receive(link, LateAnswer{StreamId{1}, 0, {Answer::Kind::text, "late"}}), run();
  };
  late();
  CHECK(returned() == "1.0=late");
  CHECK(stats.results[ResultStatus::ok].value() == 1);
  late();
  CHECK(returned().empty());
  CHECK(stats.results[ResultStatus::late].value() == 1);
}

TEST_CASE_METHOD(MessagesOfHub, "a message to a stream that has ended is counted and ignored") {
  Link& link = worker_with_row();
  send(link, 2, 0);
  CHECK(returned().empty());
  CHECK(stats.messages[MessageStatus::late].value() == 1);
  CHECK(link.receive<Room>() == Room{StreamId{2}, 0});
  CHECK_FALSE(link.ended);
}

TEST_CASE_METHOD(
    MessagesOfHub,
    "a worker that exceeds the room of a stream is disconnected, and its rows go elsewhere") {
  Link& link = worker_with_row();
  send(link, 1, 0, longest_message);
  send(link, 1, 0, longest_message);
  CHECK(link.receive<Refused>().code == "protocol");
  Link& other = attach();
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.0R");
}

TEST_CASE_METHOD(MessagesOfHub,
                 "a message about a row that was not handed over disconnects its worker") {
  Link& link = worker_with_row();
  send(link, 1, 1);
  CHECK(link.receive<Refused>().code == "protocol");
  CHECK(stats.messages[MessageStatus::ok].value() == 0);
}

TEST_CASE_METHOD(MessagesOfHub, "a worker that takes a stream over learns how much room is left") {
  Link& link = worker_with_row();
  send(link, 1, 0, 936);
  hub.lost(link, WorkerFailure::disconnect);
  run();
  Link& other = attach();
  CHECK(other.receive<HandedBatch>().opened[0].room == stream_room - 1000);
}

TEST_CASE_METHOD(HubUnderTest, "a batch has the messages of clients that its rows carry") {
  Link& link = attach();
  Link& watcher = watch();
  open(1);
  post("[1]");
  row(1);
  const std::vector<Post> expected{{StreamId{1}, 0, 7, "[1]"}};
  CHECK(link.receive<HandedBatch>().posts == expected);
  CHECK(watcher.receive<HandedBatch>().posts == expected);
  done(link, BatchId{1});
  row(1);
  CHECK(link.receive<HandedBatch>().posts.empty());
}

TEST_CASE_METHOD(HubUnderTest, "a batch names the row of each message") {
  open(1);
  post("\"for the row with frames\"");
  row(1);
  post("\"for the marker row\"");
  mark(1, flag::last);
  Link& link = attach();
  const auto batch = link.receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.0 1.1");
  CHECK(batch.posts == std::vector<Post>{{StreamId{1}, 0, 7, "\"for the row with frames\""},
                                         {StreamId{1}, 1, 7, "\"for the marker row\""}});
}

TEST_CASE_METHOD(HubUnderTest,
                 "the messages of a lost worker's rows go with them, those of done rows do not") {
  Link& link = attach();
  open(1);
  post("\"done\"");
  row(1);
  (void)link.receive<HandedBatch>();
  done(link, BatchId{1});
  post("\"again\"");
  row(1);
  (void)link.receive<HandedBatch>();
  hub.lost(link, WorkerFailure::disconnect);
  run();
  const auto batch = attach().receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.1R");
  CHECK(batch.posts == std::vector<Post>{{StreamId{1}, 1, 7, "\"again\""}});
}

TEST_CASE_METHOD(HubUnderTest,
                 "a worker that takes over a stream gets its options as of the last done row") {
  Link& link = attach();
  open(1, "mic", R"({"lang":"de","beam":4})");
  for (const char* options : {R"({"lang":"en"})", R"({"words":["a"],"lang":"fr"})"}) {
    post(options, true);
    row(1);
    (void)link.receive<HandedBatch>();
  }
  done(link, BatchId{1});
  hub.lost(link, WorkerFailure::disconnect);
  run();
  const auto batch = attach().receive<HandedBatch>();
  CHECK(batch.opened.at(0).options == R"({"beam":4,"lang":"en"})");
  CHECK(batch.posts ==
        std::vector<Post>{{StreamId{1}, 1, 7, R"({"words":["a"],"lang":"fr"})", true}});
}
