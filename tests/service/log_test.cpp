// SPDX-License-Identifier: Apache-2.0
#include "service/log.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/service/logged.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using test::Logged;

TEST_CASE("a line has a time, a level, the event and its fields") {
  Logged logged;
  logged.log->warning("worker lost", {{"pipeline", "asr"}, {"stream", "s-1"}});
  const std::string text = logged.text();
  CHECK(text.starts_with("time=20"));
  CHECK_THAT(text, EndsWith("Z level=warning event=\"worker lost\" pipeline=asr stream=s-1\n"));
}

TEST_CASE("what a peer sent cannot make a line of its own") {
  Logged logged;
  logged.log->info("refused", {{"why", "x\ntime=1 level=error"}, {"empty", ""}});
  CHECK_THAT(logged.text(), EndsWith("why=\"x\\u000atime=1 level=error\" empty=\"\"\n"));
}

TEST_CASE("an event is written once a second, the next line says how many were held back") {
  Logged logged;
  const Time begin(1000s);
  logged.log->error("disk full", {{"n", "1"}}, begin);
  logged.log->error("disk full", {{"n", "2"}}, begin + 1ms);
  logged.log->error("disk full", {{"n", "3"}}, begin + 999ms);
  logged.log->error("other", {}, begin + 999ms);
  logged.log->error("disk full", {{"n", "4"}}, begin + 1s);
  CHECK(logged.stats.logged[LogLevel::error].value() == 5);
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("n=1\n") && !Contains("n=2") && !Contains("n=3"));
  CHECK_THAT(text, Contains("event=other\n"));
  CHECK_THAT(text, EndsWith("n=4 held_back=2\n"));
}

TEST_CASE("warnings and errors count, information does not") {
  Logged logged;
  logged.log->info("a", {});
  logged.log->warning("b", {});
  CHECK(logged.stats.logged[LogLevel::warning].value() == 1);
  CHECK(logged.stats.logged[LogLevel::error].value() == 0);
}

TEST_CASE("what happens a few times in a life is never held back") {
  Logged logged;
  for (const char* device : {"cuda:0", "cuda:1"}) {
    logged.log->rare_info("device", {{"device", device}});
    logged.log->rare_error("device failed", {{"device", device}});
  }
  CHECK(logged.stats.logged[LogLevel::error].value() == 2);
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("level=info event=device device=cuda:0\n") &&
                       Contains("level=info event=device device=cuda:1\n"));
  CHECK_THAT(text, Contains("level=error event=\"device failed\" device=cuda:0\n") &&
                       Contains("level=error event=\"device failed\" device=cuda:1\n"));
}

TEST_CASE("lines that nobody reads any more are dropped") {
  Logged logged;
  logged.reader = FileDescriptor();
  logged.writer->write("line");
  logged.writer.reset();
  SUCCEED("and the program goes on");
}

TEST_CASE("a reader that does not read holds up nobody") {
  Logged logged;
  const std::string line(4000, 'x');
  for (int i = 0; i < 5000; ++i) logged.writer->write(line);
  logged.writer.reset();
  SUCCEED("neither writing nor the end blocks");
}
