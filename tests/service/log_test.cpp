// SPDX-License-Identifier: Apache-2.0
#include "service/log.h"

#include <fcntl.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "transport/file_descriptor.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

// A log into a pipe.
struct Logged {
  FileDescriptor reader, end;
  ThreadStats stats;
  std::unique_ptr<LogWriter> writer;
  std::unique_ptr<Log> log;

  Logged() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader = FileDescriptor(ends[0]);
    end = FileDescriptor(ends[1]);
    writer = std::make_unique<LogWriter>(end.get());
    log = std::make_unique<Log>(*writer, stats);
  }

  // Everything that was logged, once the writer has ended.
  std::string text() {
    log.reset();
    writer.reset();
    end = FileDescriptor();
    std::string all;
    char part[4096];
    for (ssize_t length; (length = ::read(reader.get(), part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(length));
    return all;
  }
};

}  // namespace

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
