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
  logged.log->info("refused", {{"why", "x\ntime=1 level=error"}});
  CHECK_THAT(logged.text(), EndsWith("why=\"x\\u000atime=1 level=error\"\n"));
}

TEST_CASE("what a peer sent commands no terminal, and is UTF-8 in the log") {
  Logged logged;
  logged.log->info("refused", {{"c1", "a\u009b31m"},
                               {"turned", "\u202egpj"},
                               {"bytes", "\xff\xe2\x82"},
                               {"good", "\u00e9"}});
  CHECK_THAT(logged.text(),
             EndsWith(R"(c1="a\u009b31m" turned="\u202egpj" bytes="\xff\xe2\x82" good=")"
                      "\u00e9\"\n"));
}

TEST_CASE("a field without a value is left out") {
  Logged logged;
  logged.log->info("worker attached", {{"worker", "w"}, {"why", ""}});
  CHECK_THAT(logged.text(), EndsWith("event=\"worker attached\" worker=w\n"));
}

TEST_CASE("four workers that attach within a second are all named") {
  Logged logged;
  const Time begin(1000s);
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"})
    logged.log->info("worker attached", {{"pipeline", "asr"}, {"worker", name}}, begin);
  logged.log->sum_up(begin + 2s);
  const std::string text = logged.text();
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"})
    CHECK_THAT(text,
               Contains("event=\"worker attached\" pipeline=asr worker=" + std::string(name)));
  CHECK_THAT(text, !Contains("held_back"));
}

TEST_CASE(
    "of one event four lines are written a second, the others are summed up by number and names") {
  Logged logged;
  const Time begin(1000s);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "e"})
    logged.log->warning("worker lost", {{"worker", name}}, begin + 999ms);
  logged.log->warning("other", {}, begin + 999ms);
  logged.log->sum_up(begin + 1998ms);
  logged.log->warning("worker lost", {{"worker", "g"}}, begin + 1999ms);
  CHECK(logged.stats.logged[LogLevel::warning].value() == 9);
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("worker=d\n") && !Contains("worker=e") && Contains("event=other\n"));
  CHECK_THAT(text, Contains("level=warning event=\"worker lost\" held_back=3 workers=\"e, f\"\n"));
  CHECK_THAT(text, EndsWith("event=\"worker lost\" worker=g\n"));
}

TEST_CASE("warnings are written however much information there is of the same event") {
  Logged logged;
  const Time begin(1000s);
  for (int i = 0; i < 6; ++i) logged.log->info("stream refused", {{"why", "a name"}}, begin);
  logged.log->warning("stream refused", {{"why", "no room"}}, begin);
  logged.log->sum_up(begin + 1s);
  CHECK_THAT(logged.text(), Contains("level=warning event=\"stream refused\" why=\"no room\"\n") &&
                                Contains("level=info event=\"stream refused\" held_back=2\n"));
}

TEST_CASE("what was held back is summed up when its second is over, though nothing follows") {
  Logged logged;
  const Time begin(1000s);
  for (int i = 0; i < 5; ++i) logged.log->info("stream refused", {{"why", "no room"}}, begin);
  logged.log->sum_up(begin + 1s);
  logged.log->sum_up(begin + 2s);
  CHECK_THAT(logged.text(), EndsWith("level=info event=\"stream refused\" held_back=1\n"));
}

TEST_CASE("a log that ends sums up what it has held back") {
  Logged logged;
  for (const char* name : {"a", "b", "c", "d", "e"})
    logged.log->info("stream ended", {{"stream", name}}, Time(1000s));
  CHECK_THAT(logged.text(), EndsWith("held_back=1 streams=\"e\"\n"));
}

TEST_CASE("the names in a sum are bounded in number and length") {
  Logged logged;
  for (int i = 0; i < 1000; ++i)
    logged.log->info("stream ended", {{"stream", std::to_string(i) + std::string(300, 'x')}},
                     Time(1000s));
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("held_back=996 ") && Contains(", 19xxx") && !Contains(", 20xxx"));
  CHECK(text.substr(text.find("held_back")).size() < 1200);
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
