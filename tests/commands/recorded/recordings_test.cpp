// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "tests/commands/recorded/recordings_command.h"

namespace millrace::recordings {
namespace {

TEST_CASE("ls prints a line per stream, with its state") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("ls", directory) ==
        " number  start                    duration  state      pipeline  name\n"
        "      1  2025-11-24T20:55:22Z   0:00:00.00  whole      asr       call\n"
        "      2  2025-11-24T20:55:23Z   0:00:00.00  not whole  asr       call\n");
  CHECK(good("ls", directory, {"--since", "2025-11-24T20:55:23", "--json"}) ==
        R"({"number":2,"name":"call","pipeline":"asr","opened":"2025-11-24T20:55:23.000Z",)"
        R"("duration":0.0001875,"frames":3,"end":3,"whole":false,"open":false})"
        "\n");
  CHECK(good("ls", directory, {"--until", "2025-11-24T20:55:23", "--json"})
            .starts_with(R"({"number":1,)"));
  CHECK(good("ls", directory, {"--since", "1h"}) == "");
  CHECK(good("ls", directory, {"--pipeline", "other"}) == "");
  CHECK(good("ls", directory, {"--name", "other"}) == "");
}

TEST_CASE("streams are listed by time, and the one that a service records is open") {
  RecordedDirectory directory;
  directory.hold_writer_lock();
  TestStream one(1, "late"), two(2, "early");
  one.meta.opened_wall = two.meta.opened_wall + 1;
  auto file = directory.file();
  one.event({.kind = Kind::open}).slice(file);
  two.event({.kind = Kind::open}).event({.kind = Kind::end}).slice(file);
  RecordedDirectory::commit(file);
  const auto lines = json_lines(good("ls", directory, {"--json"}));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("name") == "early");
  CHECK(lines[0].at("whole") == true);
  CHECK(lines[1].at("open") == true);
}

TEST_CASE("show prints events, answers and totals, and chunk cuts the same rows from them") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string shown = good("show", directory, {"--number", "1"});
  const auto lines = json_lines(shown);
  CHECK(lines[0] == json::parse(R"({"event":"open","count":0,"cause":"client","mark":null,
                                    "position":0,"at":0.25})"));
  CHECK(shown.find(R"({"answer":"json","seq":0,"batch":9,"data":{"text":"one"}})") != shown.npos);
  CHECK(shown.find(R"("event":"flush","count":0,"cause":"client","mark":7,"position":6,)") !=
        shown.npos);
  CHECK(lines.back().at("closed") == "end");

  const std::string file = directory / "events.jsonl";
  std::ofstream(file) << shown;
  const Output cut = run({"chunk", "--spec", "size=4", "--events", file});
  CHECK(cut.err == "");
  CHECK(cut.out == good("show", directory, {"--number", "1", "--rows"}));
  CHECK(cut.out == "[0,0,0,4,0,7,0]\n[1,4,0,2,0,16,0]\n[2,8,0,3,0,62,2]\n");
}

TEST_CASE("messages of clients are shown and exported, and no command cuts other rows for them") {
  RecordedDirectory directory;
  auto file = directory.file();
  TestStream stream(1, "call");
  stream.event({.kind = Kind::open}).frames(3).text(Kind::message, R"(["Hugo"])").frames(3);
  stream.text(Kind::set, R"({"lang":"de"})").event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  const std::string shown = good("show", directory, {"call"});
  const auto lines = json_lines(shown);
  CHECK(lines[2] == json::parse(R"({"event":"message","count":8,"cause":"client","mark":null,
                                    "position":3,"at":0.25,"data":["Hugo"]})"));
  CHECK(lines[4].at("event") == "set");
  CHECK(lines[4].at("data") == json::parse(R"({"lang":"de"})"));
  std::ofstream(directory / "events.jsonl") << shown;
  CHECK(run({"chunk", "--spec", "size=4", "--events", directory / "events.jsonl"}).out ==
        good("show", directory, {"call", "--rows"}));
  CHECK_THAT(good("verify", directory, {"--rows"}), Catch::EndsWith("again: good\n"));
  good("export", directory, {"--to", directory / "calls"});
  const auto exported = json_lines(text_of(directory / "calls/streams.jsonl"));
  CHECK(exported.at(0).at("events").at(1) == lines[2]);
}

TEST_CASE("show names what is missing") {
  RecordedDirectory directory;
  record_two(directory);
  const Output output = run({"recordings", "show", directory.path(), "--number", "2"});
  CHECK(output.exit_code == 0);
  CHECK(output.err.starts_with("stream 2: positions 3 to 3, 0 events: "));
}

TEST_CASE("a name that several streams have does not choose one of them") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(bad("show", directory, {"call"}) ==
        "millrace recordings show: 2 streams are selected; select one of them by --number: 1, 2\n");
  CHECK(bad("show", directory, {"--number", "3"}) ==
        "millrace recordings show: there is no stream 3\n");
  CHECK(bad("show", directory) ==
        "millrace recordings show: the NAME or the --number of a stream must be given\n");
}

// Streams 1, 2 and 3, named `3`, `x` and `1`.
void record_digits(RecordedDirectory& to) {
  auto file = to.file();
  for (const auto& [number, name] : {std::pair{1, "3"}, {2, "x"}, {3, "1"}}) {
    TestStream stream(static_cast<std::uint64_t>(number), name);
    stream.event({.kind = Kind::open}).frames(6).event({.kind = Kind::end}).slice(file);
  }
  REQUIRE(file.seal());
}

TEST_CASE("an argument of digits is a name, and --number a number, in each command") {
  RecordedDirectory directory;
  record_digits(directory);
  CHECK(json_lines(good("ls", directory, {"1", "--json"}))[0].at("number") == 3);
  CHECK(json_lines(good("ls", directory, {"--number", "1", "--json"}))[0].at("name") == "3");
  CHECK(good("show", directory, {"1"}) == good("show", directory, {"--number", "3"}));
  const std::string by_name = directory / "by_name", by_number = directory / "by_number";
  CHECK(good("export", directory, {"1", "--to", by_name}) == "");
  CHECK(std::filesystem::exists(by_name + "/3.wav"));
  CHECK(good("export", directory, {"--to", by_number, "--number", "1", "2"}) == "");
  CHECK_FALSE(std::filesystem::exists(by_number + "/3.wav"));
  CHECK(good("rm", directory, {"3"}).starts_with("removed stream 1, 3\n1 stream removed, "));
  CHECK(good("rm", directory, {"--number", "3"}).starts_with("removed stream 3, 1\n"));
  CHECK(json_lines(good("ls", directory, {"--json"}))[0].at("name") == "x");
}

TEST_CASE("for a number that is no name, the error has the line that selects by number") {
  RecordedDirectory directory;
  record_digits(directory);
  const std::string error =
      "no stream has the name \"2\"; to select by number: millrace recordings ";
  const std::string path = " '" + directory.path() + "' ";
  const auto rm = bad("rm", directory, {"2", "x", "--number", "1"});
  CHECK(rm == "millrace recordings rm: " + error + "rm" + path + "'x' --number 2 1\n");
  CHECK(bad("ls", directory, {"2"}).ends_with(error + "ls" + path + "--number 2\n"));
  const Output negative = run({"recordings", "show", directory.path(), "--number", "-1"});
  CHECK(negative.exit_code != 0);
  CHECK(negative.err.find("\"-1\" must not be negative") != std::string::npos);
  CHECK(bad("ls", directory, {"2", "--name=-x", "--json", "--pipeline", "asr", "--since", "2h"})
            .ends_with(path + "--pipeline 'asr' --since '2h' --json --name='-x' --number 2\n"));
  CHECK(bad("show", directory, {"2", "--rows"}).ends_with("show" + path + "--rows --number 2\n"));
  CHECK(bad("export", directory, {"2", "--to", "a b"})
            .ends_with(path + "--to 'a b' --format wav --by stream --gaps silence --number 2\n"));
}

TEST_CASE("after rm no command finds the stream, and its frames are in no file") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    TestStream one(1, "secret"), two(2, "public");
    one.event({.kind = Kind::open}).frames(600).event({.kind = Kind::end}).slice(file);
    two.event({.kind = Kind::open}).frames(3).event({.kind = Kind::end}).slice(file);
    REQUIRE(file.seal());
  }
  CHECK(good("rm", directory, {"--number", "1"})
            .starts_with("removed stream 1, secret\n1 stream removed, "));
  CHECK(bad("show", directory, {"secret"}).find("no stream has the name") != std::string::npos);
  CHECK(good("ls", directory).find("secret") == std::string::npos);
  CHECK(text_of(directory / "0000000001.mcap").find("secret") == std::string::npos);
  CHECK(good("verify", directory, {"--rows"})
            .ends_with("1 stream, 1 whole, 0 lost parts, rows of 1 stream cut again: good\n"));
}

TEST_CASE("rm seals a file that was left unsealed, so that it can be rewritten") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    TestStream(1, "secret").event({.kind = Kind::open}).frames(6).slice(file);
    RecordedDirectory::commit(file);
  }
  CHECK(good("rm", directory, {"--name", "secret"}).find("\nremoved stream 1, secret\n") !=
        std::string::npos);
  CHECK(text_of(directory / "0000000001.mcap").find("secret") == std::string::npos);
}

TEST_CASE("a stream that is being recorded is removed, and its file left to the service") {
  RecordedDirectory directory;
  directory.hold_writer_lock();
  auto file = directory.file();
  TestStream stream(1, "call");
  stream.event({.kind = Kind::open}).frames(6).slice(file);
  RecordedDirectory::commit(file);
  const std::string before = text_of(directory / "0000000001.mcap");
  CHECK(good("rm", directory, {"call"}) ==
        "removed stream 1, call\n1 stream removed, 0 B freed\n"
        "0000000001.mcap, which the service is writing, still has removed streams: it is rewritten "
        "without them when it is full, or when the service stops\n");
  CHECK(good("verify", directory)
            .ends_with("; 0000000001.mcap has removed streams until it is sealed: good\n"));
  CHECK(text_of(directory / "0000000001.mcap") == before);
  CHECK(good("ls", directory) == "");
}

TEST_CASE("rm chooses streams by age") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("rm", directory, {"--before", "2025-11-24T20:55:22"}).starts_with("0 streams"));
  CHECK(good("rm", directory, {"--older-than", "99999h"}).starts_with("0 streams"));
  CHECK(good("rm", directory, {"--before", "2025-11-24T20:55:23"})
            .starts_with("removed stream 1, call\n"));
  CHECK(good("rm", directory, {"--older-than", "1h"}).starts_with("removed stream 2, call\n"));
  CHECK(good("ls", directory) == "");
}

TEST_CASE("wrong arguments of the commands are named in one line") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(bad("rm", directory) ==
        "millrace recordings rm: exactly one of NAME or --number, --before, "
        "--older-than and --tenant must be given\n");
  CHECK(bad("rm", directory, {"--number", "1", "99"}) ==
        "millrace recordings rm: there is no stream 99\n");
  CHECK(bad("rm", directory, {"--name", "x"}) ==
        "millrace recordings rm: no stream has the name \"x\"\n");
  CHECK(bad("rm", directory, {"--before", "2h"}) ==
        "millrace recordings rm: --before: \"2h\" must be a date like 2026-11-24 or "
        "2026-11-24T20:55:00Z\n");
  CHECK(bad("rm", directory, {"--older-than", "2026-11-24"}) ==
        "millrace recordings rm: --older-than: \"2026-11-24\" must be a time like 720h\n");
  CHECK(bad("ls", directory, {"--since", "soon"}) ==
        "millrace recordings ls: --since: \"soon\" must be a date like 2026-11-24 or "
        "2026-11-24T20:55:00Z, or a time like 2h\n");
  CHECK(run({"recordings", "list", directory.path()}).err ==
        "millrace: there is no command \"recordings list\"; see millrace --help\n");
  for (const char* command : {"ls", "verify", "repair"}) {
    const Output output = run({"recordings", command, directory / "nowhere"});
    CHECK(output.exit_code == 1);
    CHECK(output.err.find("nowhere") != output.err.npos);
  }
  CHECK_FALSE(std::filesystem::exists(directory / "nowhere"));
}

}  // namespace
}  // namespace millrace::recordings
