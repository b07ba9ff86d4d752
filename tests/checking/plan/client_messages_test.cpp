// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/client_messages.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "schemas/text.h"
#include "tests/checking/plan/streams.h"

using namespace millrace;
using namespace millrace::checking;

namespace {

std::vector<CheckedStream> streams_with_messages(const ClientTexts& texts = {}) {
  auto streams = drawn_streams(40);
  Draws draws;
  add_client_messages(streams, texts, draws);
  return streams;
}

template <class Visit>
void for_each_message(const std::vector<CheckedStream>& streams, Visit visit) {
  for (const CheckedStream& stream : streams)
    for (std::uint32_t row = 0; row < stream.rows().size(); ++row)
      for (const StreamPost& message : stream.rows()[row].messages) visit(stream, row, message);
}

}  // namespace

TEST_CASE("messages are objects with a key that no worker knows") {
  std::set<std::string> kinds;
  for_each_message(streams_with_messages(), [&](auto&, auto, const StreamPost& message) {
    REQUIRE(is_json_object(message.text));
    REQUIRE(message.text.starts_with("{\"check_worker"));
    if (!message.set)
      kinds.insert(message.text.substr(0, std::string("{\"check_worker\":x").size()));
  });
  for (const char* kind : {"\"", "[", "{", "t"})
    CHECK(kinds.contains("{\"check_worker\":" + std::string(kind)));
}

TEST_CASE("each stream has options of its own, also beside those that it had") {
  std::vector<CheckedStream> streams = drawn_streams(3);
  streams[1].set_options(R"({"lang":"de"})");
  Draws draws;
  add_client_messages(streams, {}, draws);
  CHECK(streams[0].options_before(0) == R"({"check_worker":0,"check_worker_text":""})");
  CHECK(streams[1].options_before(0) == R"({"lang":"de","check_worker":1,"check_worker_text":""})");
}

TEST_CASE("options change with the row after the message that sets them") {
  auto streams = drawn_streams(1);
  streams[0].set_options(R"({"a":1})");
  streams[0].post(2, {.position = 20, .text = R"({"b":2})", .set = true});
  streams[0].post(2, {.position = 20, .text = R"({"a":9})", .set = false});
  CHECK(streams[0].options_before(2) == R"({"a":1})");
  CHECK(streams[0].options_before(3) == R"({"a":1,"b":2})");
}

TEST_CASE("the first stream has no messages, and others have them before the rows that need it") {
  std::size_t sets = 0, in_first_runs = 0, others = 0;
  const auto streams = streams_with_messages();
  for_each_message(streams, [&](auto& stream, std::uint32_t row, const StreamPost& message) {
    REQUIRE(&stream != &streams.front());
    const Row& cut = stream.rows()[row].row;
    REQUIRE(message.position >= cut.begin);
    REQUIRE(message.position <= cut.end() + cut.right);
    if (!message.set) REQUIRE(row >= stream.runs().back());
    (message.set ? sets : others)++;
    in_first_runs += row < stream.runs().back();
  });
  CHECK(sets > 50);
  CHECK(others > 50);
  CHECK(in_first_runs > 20);
}

TEST_CASE("the messages and options of a worker's clients take the place of these") {
  const auto streams = streams_with_messages({{"[1]", "\"b\""}, {R"({"lang":"de"})"}});
  for_each_message(streams, [](auto&, auto, const StreamPost& message) {
    REQUIRE((message.set ? message.text == R"({"lang":"de"})"
                         : message.text == "[1]" || message.text == "\"b\""));
  });
  CHECK(std::ranges::any_of(streams, [](const CheckedStream& stream) {
    return stream.options_before(0).ends_with(R"("lang":"de"})");
  }));
}

TEST_CASE("options stay as short as a service allows") {
  const std::string long_text(3000, 'x');
  const auto streams = streams_with_messages(
      {{}, {"{\"a\":\"" + long_text + "\"}", "{\"b\":\"" + long_text + "\"}"}});
  for (const CheckedStream& stream : streams)
    CHECK(stream.options_before(static_cast<std::uint32_t>(stream.rows().size())).size() <= 4096);
}
