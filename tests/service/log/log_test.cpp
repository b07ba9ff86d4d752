// SPDX-License-Identifier: Apache-2.0
#include "service/log/log.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "service/log/recent_log.h"
#include "tests/service/log/logged.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using test::Logged;

namespace {

constexpr LogOptions json{.format = LogFormat::json};

// The only line of the text.
boost::json::object object_of(const std::string& text) {
  INFO(text);
  REQUIRE(std::ranges::count(text, '\n') == 1);
  return boost::json::parse(text).as_object();
}

// Waits until the thread of the writer has counted `lines` dropped lines.
void await_dropped(const LogWriter& writer, std::uint64_t lines) {
  while (writer.stats().dropped.value() < lines) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a line has a time, a level, the event and its fields") {
  Logged logged;
  logged.log->warning("worker lost", {{"pipeline", "asr"}, {"stream", "s-1"}});
  const std::string text = logged.text();
  CHECK(text.starts_with("time=20"));
  CHECK_THAT(text, EndsWith("Z level=warning event=\"worker lost\" pipeline=asr stream=s-1\n"));
}

TEST_CASE("text from a peer cannot begin a new line of the log") {
  Logged logged;
  logged.log->info("refused", {{"why", "x\ntime=1 level=error"}});
  CHECK_THAT(logged.text(), EndsWith("why=\"x\\u000atime=1 level=error\"\n"));
}

TEST_CASE("text from a peer cannot control a terminal, and is UTF-8 in the log") {
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

TEST_CASE("four lines of one event are written per second, and the others are summed up by name") {
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

TEST_CASE("warnings are written even if lines of level info of the same event are held back") {
  Logged logged;
  const Time begin(1000s);
  for (int i = 0; i < 6; ++i) logged.log->info("stream refused", {{"why", "a name"}}, begin);
  logged.log->warning("stream refused", {{"why", "no room"}}, begin);
  logged.log->sum_up(begin + 1s);
  CHECK_THAT(logged.text(), Contains("level=warning event=\"stream refused\" why=\"no room\"\n") &&
                                Contains("level=info event=\"stream refused\" held_back=2\n"));
}

TEST_CASE("lines held back are summed up after their second, even if no line follows") {
  Logged logged;
  const Time begin(1000s);
  for (int i = 0; i < 5; ++i) logged.log->info("stream refused", {{"why", "no room"}}, begin);
  logged.log->sum_up(begin + 1s);
  logged.log->sum_up(begin + 2s);
  CHECK_THAT(logged.text(), EndsWith("level=info event=\"stream refused\" held_back=1\n"));
}

TEST_CASE("a log that ends sums up the lines that it has held back") {
  Logged logged;
  for (const char* name : {"a", "b", "c", "d", "e"})
    logged.log->info("stream ended", {{"stream", name}}, Time(1000s));
  CHECK_THAT(logged.text(), EndsWith("held_back=1 streams=\"e\"\n"));
}

TEST_CASE("the names in a summary line are limited in number and length") {
  Logged logged;
  for (int i = 0; i < 1000; ++i)
    logged.log->info("stream ended", {{"stream", std::to_string(i) + std::string(300, 'x')}},
                     Time(1000s));
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("held_back=996 ") && Contains(", 19xxx") && !Contains(", 20xxx"));
  CHECK(text.substr(text.find("held_back")).size() < 1200);
}

TEST_CASE("warnings and errors are counted, and lines of level info are not") {
  Logged logged;
  logged.log->info("a", {});
  logged.log->warning("b", {});
  CHECK(logged.stats.logged[LogLevel::warning].value() == 1);
  CHECK(logged.stats.logged[LogLevel::error].value() == 0);
}

TEST_CASE("rare lines are never held back") {
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

TEST_CASE("a reader that does not read blocks no writer") {
  Logged logged;
  const std::string line(4000, 'x');
  for (int i = 0; i < 5000; ++i) logged.writer->write(line);
  await_dropped(*logged.writer, 5000 - 1024 - 64);  // all but those in the queue and in the pipe
  logged.writer.reset();
  SUCCEED("neither writing nor the end blocks");
}

TEST_CASE("in JSON a line is an object with the same fields") {
  Logged logged(json);
  logged.log->warning("worker lost", {{"pipeline", "asr"}, {"stream", "s-1"}, {"why", ""}});
  const std::string text = logged.text();
  CHECK(object_of(text)["time"].as_string().ends_with("Z"));
  CHECK_THAT(text, EndsWith(R"(Z","level":"warning","event":"worker lost","pipeline":"asr",)"
                            R"("stream":"s-1"})"
                            "\n"));
}

TEST_CASE("in JSON a value may be any bytes") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  Logged logged(json);
  logged.log->info("refused", {{"bytes", all},
                               {"c1", "a\u009b31m"},
                               {"turned", "\u202egpj"},
                               {"tag", "\U000e0001"},
                               {"quoted", "\"\\"},
                               {"good", "\u00e9"}});
  const std::string text = logged.text();
  auto line = object_of(text);
  CHECK(line["bytes"].as_string().starts_with(std::string_view("\0\x01", 2)));
  CHECK(line["c1"] == "a\u009b31m");
  CHECK(line["quoted"] == "\"\\");
  CHECK_THAT(text, Contains(R"("c1":"a\u009b31m","turned":"\u202egpj")") &&
                       Contains("\"good\":\"\u00e9\"") && Contains("\ufffd"));
}

TEST_CASE("in JSON a line with long values is whole, and fits into one write to a pipe") {
  Logged logged(json);
  const std::string worst(1000, '\x01');
  logged.log->info("refused", {{"a", worst},
                               {"b", worst},
                               {"c", worst},
                               {"d", worst},
                               {"e", worst},
                               {"f", worst},
                               {"g", worst},
                               {"h", worst},
                               {"i", worst},
                               {"j", worst}});
  const std::string text = logged.text();
  CHECK(text.size() <= 4001);
  CHECK(object_of(text)["a"].as_string().ends_with("\x01..."));
}

TEST_CASE("in JSON a summary line has the number and the names of the lines held back") {
  Logged logged(json);
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    logged.log->warning("worker lost", {{"worker", name}}, Time(1000s));
  const std::string text = logged.text();
  auto sum = boost::json::parse(text.substr(text.rfind('{'))).as_object();
  CHECK(sum["held_back"] == 2);
  CHECK(sum["workers"] == "e, f");
}

TEST_CASE("lines below the level of the log are not written, but warnings are counted") {
  Logged logged({.level = LogLevel::error});
  logged.log->info("a", {});
  logged.log->warning("b", {});
  logged.log->rare_info("c", {});
  logged.log->error("d", {});
  CHECK(logged.stats.logged[LogLevel::warning].value() == 1);
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("event=d\n") && !Contains("event=a") && !Contains("event=b") &&
                       !Contains("event=c"));
}

TEST_CASE("a new level or format applies from the next line on") {
  Logged logged;
  logged.log->info("a", {});
  logged.writer->set_options({.level = LogLevel::warning, .format = LogFormat::json});
  logged.log->info("b", {});
  logged.log->warning("c", {});
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("event=a\n{\"time\":") && EndsWith("\"event\":\"c\"}\n") &&
                       !Contains("\"b\""));
}

TEST_CASE("the last hundred warnings and errors are kept, whatever the level of the log") {
  Logged logged({.level = LogLevel::error});
  RecentLog recent(*logged.writer);
  logged.log->info("information", {});
  for (int i = 0; i < 150; ++i) {
    logged.log->warning("worker lost", {{"worker", std::to_string(i)}}, Time(i * 1s));
    recent.collect();
  }
  logged.log->error("device failed", {});
  recent.collect();
  REQUIRE(recent.lines().size() == 100);
  const auto line = [&](std::size_t i) {
    return boost::json::parse(recent.lines()[i]).as_object();
  };
  CHECK(line(0).at("worker") == "51");
  CHECK(line(98).at("worker") == "149");
  CHECK(line(99).at("event") == "device failed");
}

TEST_CASE("the number of recent lines that are not collected is limited") {
  Logged logged;
  RecentLog recent(*logged.writer);
  for (int i = 0; i < 1000; ++i) logged.writer->add_recent(std::to_string(i));
  recent.collect();
  CHECK(recent.lines().size() == 100);
  CHECK(recent.lines().back() == "255");
}

TEST_CASE("lines that cannot be written are counted, and a later line has their number") {
  // The file size limit of 50 bytes fails writes as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  const TemporaryDirectory folder;
  const FileDescriptor file(
      ::open((folder / "log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full{50, limit.rlim_max};
  LogWriter writer({}, file.get());
  ::setrlimit(RLIMIT_FSIZE, &full);
  writer.write(std::string(45, 'a'));
  writer.write(std::string(45, 'b'));  // the file has space for 4 bytes of it
  writer.write(std::string(45, 'c'));
  await_dropped(writer, 2);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  writer.write("d");
  writer.write("e");
  CHECK(writer.stats().dropped.value() == 2);
  std::string text;
  while (!text.ends_with("e\n")) {
    std::ifstream lines(folder / "log");
    text = {std::istreambuf_iterator<char>(lines), {}};
  }
  CHECK_THAT(text, Contains("a\nbbbb\nd\ntime=") &&
                       Contains(" level=warning event=\"log lines dropped\" count=2\ne\n"));
}

TEST_CASE("lines without a reader are counted") {
  Logged logged;
  logged.reader = FileDescriptor();
  logged.log->info("a", {});
  logged.log->info("b", {});
  await_dropped(*logged.writer, 2);
  CHECK(logged.writer->stats().dropped.value() == 2);
}
