// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/stream_output.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace millrace {
namespace {

client_event::Result answer(std::string data, std::uint8_t flags = 0,
                            Answer::Kind kind = Answer::Kind::json) {
  return {.flags = flags, .answer = {.kind = kind, .data = std::move(data)}};
}

struct Printed {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  StreamOutput output{console, {}};

  explicit Printed(std::size_t columns = 0, const StreamOutput::Look& look = {})
      : console{.out = out, .err = err, .columns = columns}, output(console, look) {}

  // What a message adds to the output.
  std::string print(const ClientEvent& event, const std::string& name = "a",
                    std::uint64_t stream = 0) {
    out.str("");
    CHECK(output.print(event, {stream, name}, "{}"));
    return out.str();
  }
};

const std::string anew = "\r\x1b[K";

}  // namespace

TEST_CASE("what is not a terminal gets a line for each final text") {
  Printed printed;
  CHECK(printed.print(answer(R"({"text":"he"})")).empty());
  CHECK(printed.print(answer(R"({"text":"he was"})", flag::last)) == "he was\n");
  CHECK(printed.print(answer(R"({"text":""})", flag::last)).empty());
}

TEST_CASE("on a terminal the text of the segment is a line that grows") {
  Printed printed(80);
  CHECK(printed.print(answer(R"({"text":"he"})")) == "he");
  CHECK(printed.print(answer(R"({"text":"he was"})")) == anew + "he was");
  CHECK(printed.print(answer(R"({"text":"he was ill"})", flag::last)) == anew + "he was ill\n");
  CHECK(printed.print(answer(R"({"text":"and"})")) == "and");
}

TEST_CASE("a text that is longer than the terminal shows its end") {
  Printed printed(8);
  CHECK(printed.print(answer(R"({"text":"1234567"})")) == "1234567");
  CHECK(printed.print(answer(R"({"text":"12345678"})")) == anew + "…45678");
  CHECK(printed.print(answer(R"({"text":"今日は今日は"})")) == anew + "…日は");
  CHECK(printed.print(answer(R"({"text":"сегодня"})")) == anew + "сегодня");
  CHECK(printed.print(answer(R"({"text":"12345678"})", flag::last)) == anew + "12345678\n");
}

TEST_CASE("other messages are JSON lines, above the text that grows") {
  Printed printed(80);
  CHECK(printed.print(client_event::Opened()) == "{}\n");
  CHECK(printed.print(answer("7")) == "{}\n");
  printed.print(answer(R"({"text":"he"})"));
  CHECK(printed.print(client_event::Flushed()) == anew + "{}\nhe");
  printed.out.str("");
  printed.output.print_problem("wrong");
  CHECK(printed.err.str() == "wrong\n");
  CHECK(printed.out.str() == anew + "he");
}

TEST_CASE("of several streams the newest text grows, and each text has its stream's name") {
  Printed printed(80, {.named = true});
  CHECK(printed.print(answer(R"({"text":"he"})"), "a", 1) == "a: he");
  CHECK(printed.print(answer(R"({"text":"and"})"), "a", 2) == anew + "a: and");
  CHECK(printed.print(answer(R"({"text":"he was"})", flag::last), "a", 1) ==
        anew + "a: he was\na: and");
  CHECK(printed.print(answer(R"({"text":"the"})"), "b", 3) == anew + "b: the");
  CHECK(printed.print(client_event::Closed(), "a", 2) == anew + "a: and\n{}\nb: the");
}

TEST_CASE("the name before a text stays if the line is too long, unless it is long itself") {
  Printed printed(16, {.named = true});
  CHECK(printed.print(answer(R"({"text":"0123456789012"})"), "a") == "a: …3456789012");
  CHECK(printed.print(answer(R"({"text":"01234"})"), "speech.wav") == anew + "…ch.wav: 01234");
}

TEST_CASE("a text that gets no final one stays") {
  Printed printed(80);
  const auto stays = [&printed](const ClientEvent& event) {
    printed.print(answer(R"({"text":"so"})"));
    return printed.print(event).starts_with(anew + "so\n");
  };
  CHECK(stays(answer(R"({"text":"it"})", flag::reset)));
  CHECK(stays(answer("null", flag::reset)));                      // no transcript
  CHECK(stays(answer(R"({"text":"it"})", flag::segment)));        // LAST had no answer
  CHECK(stays(answer("worker_failed", 0, Answer::Kind::error)));  // the next state is fresh
  CHECK(stays(client_event::Closed()));
  CHECK(printed.print(client_event::Opened()) == "{}\n");
}

TEST_CASE("a text cannot control the terminal") {
  Printed printed;
  CHECK(printed.print(answer("{\"text\":\"a\\u001b[2Jb\\nc\"}", flag::last)) == "a [2Jb c\n");
}

TEST_CASE("with JSON lines, transcripts are JSON lines too") {
  Printed printed(80, {.json = true});
  CHECK(printed.print(answer(R"({"text":"he"})")) == "{}\n");
}

}  // namespace millrace
