// SPDX-License-Identifier: Apache-2.0
#include "service/admin/stream_walk.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;

namespace {

// An admission that accepts many streams.
struct ManyStreams {
  explicit ManyStreams(std::size_t streams) {
    for (std::size_t i = 0; i < streams; ++i) open(std::to_string(i));
  }
  ~ManyStreams() {
    for (auto& client : t.clients) {
      if (client.stream) AdmissionUnderTest::disconnect(client);
      t.run();  // so that the messages do not exceed the queue of the pipeline
    }
  }
  AdmissionUnderTest::Client& open(std::string name, std::string pipeline = "default") {
    for (auto& each : t.pipelines) each->hub().stream_budget().set_limit(100'000);
    auto& client = t.open({.pipeline = std::move(pipeline), .id = std::move(name)});
    REQUIRE(client.stream);
    t.run();  // its pipeline receives the stream
    return client;
  }
  // Sends frames that are in no row yet, so that the stream holds them.
  void hold(AdmissionUnderTest::Client& client, std::size_t frames) {
    (void)client.received();  // unread messages would count too
    const std::vector<std::byte> bytes(2 * frames);
    client.stream->frames(bytes, Clock::now());
  }

  StreamList list(const StreamQuery& query) {
    StreamWalk walk(query, Clock::now());
    while (!walk.step(t.admission->table())) ++steps;
    StreamList list = walk.take();
    sort(list.lines, query.order, query.limit);
    return list;
  }
  std::vector<std::string> names(const StreamQuery& query) {
    std::vector<std::string> names;
    for (const StreamLine& line : list(query).lines) names.push_back(line.name);
    return names;
  }

  AdmissionUnderTest t{20'000};
  std::size_t steps = 1;
};

}  // namespace

TEST_CASE("streams are listed by age, by the bytes that they hold, or by name") {
  ManyStreams many(0);
  auto& first = many.open("b");
  (void)many.open("c").received();
  auto& last = many.open("a");
  many.hold(first, 1);
  many.hold(last, 3);
  CHECK(many.names({.order = StreamOrder::age}) == std::vector<std::string>{"b", "c", "a"});
  CHECK(many.names({.order = StreamOrder::held}) == std::vector<std::string>{"a", "b", "c"});
  CHECK(many.names({.order = StreamOrder::name}) == std::vector<std::string>{"a", "b", "c"});
  const StreamList most = many.list({.order = StreamOrder::held, .limit = 1});
  REQUIRE(most.lines.size() == 1);
  CHECK(most.lines.front().held_bytes == 6);
  CHECK(most.total == 3);
}

TEST_CASE("a list of one pipeline has and counts only its streams") {
  ManyStreams many(3);
  many.open("vector", "features");
  const StreamList list = many.list({.pipeline = "features"});
  REQUIRE(list.lines.size() == 1);
  CHECK(list.lines.front().name == "vector");
  CHECK(list.total == 1);
  CHECK(many.list({}).total == 4);
}

TEST_CASE("the first of many streams are listed, in many slices") {
  constexpr std::size_t streams = 5000;
  ManyStreams many(streams);
  const StreamList list = many.list({.limit = 1200});
  CHECK(list.total == streams);
  REQUIRE(list.lines.size() == 1200);
  CHECK(list.lines.front().name == "0");
  CHECK(list.lines.back().name == "1199");
  CHECK(many.steps >= (streams + 1200) / StreamWalk::slice);
  CHECK(many.names({.order = StreamOrder::name, .limit = 3}) ==
        std::vector<std::string>{"0", "1", "10"});
}

TEST_CASE("streams that come and go between two slices make no stream be listed twice") {
  ManyStreams many(2000);
  const StreamTable& table = many.t.admission->table();
  StreamWalk walk({.limit = 10'000}, Clock::now());
  CHECK_FALSE(walk.step(table));
  std::size_t streams = 2000;
  for (const auto buckets = table.buckets(); table.buckets() == buckets; ++streams)
    many.open(std::to_string(streams));
  bool complete = false;
  for (std::size_t i = 0; !complete; ++i) {
    complete = walk.step(table);
    if (i == 10) AdmissionUnderTest::disconnect(many.t.clients.front());
  }
  StreamList list = walk.take();
  sort(list.lines, StreamOrder::name, list.lines.size());
  CHECK(list.lines.size() >= streams - 1);
  CHECK(std::ranges::adjacent_find(list.lines, {}, &StreamLine::name) == list.lines.end());
}
