// SPDX-License-Identifier: Apache-2.0
#include "checking/message_report.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/checking/plan/streams.h"

using namespace millrace;
using namespace millrace::checking;

namespace {

using Texts = std::vector<std::vector<std::string>>;

StageMessages messages(const Texts& texts) {
  StageMessages all;
  for (const auto& stream : texts) {
    all.emplace_back();
    for (const std::string& text : stream)
      all.back().push_back({.kind = Answer::Kind::json, .data = text});
  }
  return all;
}

// Stream "a" has one run, "b" has two.
struct Sent {
  std::vector<CheckedStream> streams;
  std::vector<Stage> stages{{"alone", "", {}}, {"again", "", {}}, {"together", "", {}}};

  Sent() {
    const ChunkRule rule{.spec = {.size = 6}};
    const std::vector<std::uint64_t> none, second{1};
    streams.emplace_back(counted_frames(12, "a"), FrameType(), rule, CheckedStream::Events(), none);
    streams.emplace_back(counted_frames(12, "b"), FrameType(), rule, CheckedStream::Events(),
                         second);
  }

  MessageReport report(const Texts& alone, const Texts& again, const Texts& together,
                       double tolerance = 0) const {
    MessageReport made(streams, stages, tolerance);
    for (const auto& stage : {alone, again, together}) made.add(messages(stage));
    return made;
  }
};

}  // namespace

TEST_CASE_METHOD(Sent, "equal messages do not differ, and those of streams with one run count") {
  const Texts same{{"1", "2"}, {"3"}};
  const MessageReport equal = report(same, same, {{"1", "2"}, {"3"}, {"1", "2"}, {"3"}});
  CHECK_FALSE(equal.differs());
  CHECK_FALSE(equal.depends_on_time());
  CHECK(equal.compared() == 2);
  CHECK(equal.distinct() == 2);
  CHECK(report({{"1", "1"}, {"3"}}, {}, {}).distinct() == 1);
}

TEST_CASE_METHOD(Sent, "the first message that differs is shown") {
  const Texts same{{"1", "2"}, {"3"}};
  const MessageReport other = report(same, same, {{"1", "2"}, {"3"}, {"1", "5"}, {"3"}});
  REQUIRE(other.differs());
  CHECK_THAT(other.difference(), Catch::StartsWith("The first message of the worker that differs "
                                                   "is number 1 to stream \"a\".\n"
                                                   "  alone             2\n"
                                                   "  here              5\n"
                                                   "  stage             together\n"));
  CHECK_THAT(report(same, same, {{"1"}, {"3"}}).difference(), Catch::Contains("no message\n"));
  CHECK_THAT(report(same, same, {{"1", "2", "7"}, {"3"}}).difference(),
             Catch::Contains("is number 2 to stream \"a\".\n  alone             no message\n"));
}

TEST_CASE_METHOD(Sent, "messages may differ by the tolerance, their texts by a part of all") {
  CHECK_FALSE(report({{"1"}, {}}, {{"1.05"}, {}}, {{"1.1"}, {}}, 0.2).differs());
  const Texts text{{"\"abcde\"", "\"abcde\""}, {}};
  CHECK_FALSE(report(text, text, {{"\"axxde\"", "\"abcde\""}, {}}, 0.2).differs());
  CHECK(report(text, text, {{"\"axxde\"", "\"abcdx\""}, {}}, 0.2).differs());
}

// Messages about the rows before a RESET may come after it, or not at all.
TEST_CASE_METHOD(Sent, "messages to streams with several runs are not compared") {
  CHECK_FALSE(report({{}, {"3"}}, {{}, {"3"}}, {{}, {"4"}}).differs());
}

TEST_CASE_METHOD(Sent, "messages that differ while each stream is alone depend on the time") {
  const MessageReport timed = report({{"1", "2"}, {}}, {{"1"}, {}}, {{"7"}, {}});
  CHECK(timed.depends_on_time());
  CHECK_FALSE(timed.differs());
  CHECK(timed.compared() == 0);
}
