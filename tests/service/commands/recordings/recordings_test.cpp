// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "service/commands/chunk.h"
#include "service/commands/command_line.h"
#include "tests/service/commands/recordings/recorded_directory.h"

namespace millrace::recordings {
namespace {

namespace json = boost::json;
using Kind = Event::Kind;

// The output of a command, and its exit code.
struct Output {
  std::string out, err;
  int exit_code;
};

Output run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{out, err};
  CommandLine program;
  add_recordings_command(program, console);
  add_chunk_command(program, console);
  program.run(arguments, console);
  return {out.str(), err.str(), console.exit_code};
}

// The output of `recordings COMMAND DIR ARGUMENTS…`, which must succeed without a note.
std::string good(const std::string& command, const RecordedDirectory& directory,
                 std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"recordings", command, directory.path()});
  const Output output = run(arguments);
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  return output.out;
}

// The lines on both outputs of a command that must fail.
std::string bad(const std::string& command, const RecordedDirectory& directory,
                std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"recordings", command, directory.path()});
  const Output output = run(arguments);
  CHECK(output.exit_code == 1);
  return output.out + output.err;
}

std::vector<json::value> json_lines(const std::string& text) {
  std::vector<json::value> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) values.push_back(json::parse(line));
  return values;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Stream 1 `call` is whole, over two files. Stream 2 `call` has no end. Both files are sealed.
void record_two(RecordedDirectory& to) {
  TestStream one(1, "call"), two(2, "call");
  {
    auto file = to.file();
    one.event({.kind = Kind::open}).frames(6).answer(0, R"({"text":"one"})").slice(file);
    two.event({.kind = Kind::open}).frames(3).slice(file);
    REQUIRE(file.seal());
  }
  auto file = to.file(3);
  one.event({.kind = Kind::flush, .mark = 7}).event({.kind = Kind::gap, .count = 2});
  one.frames(3).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
}

TEST_CASE("ls prints a line per stream, with its state") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("ls", directory) ==
        " number  start                      length  state      pipeline  name\n"
        "      1  2025-11-24T20:55:22Z   0:00:00.00  whole      asr  call\n"
        "      2  2025-11-24T20:55:23Z   0:00:00.00  not whole  asr  call\n");
  CHECK(good("ls", directory, {"--since", "2025-11-24T20:55:23", "--json"}) ==
        R"({"stream":2,"name":"call","pipeline":"asr","opened":"2025-11-24T20:55:23.000Z",)"
        R"("duration":0.0001875,"frames":3,"end":3,"whole":false,"open":false})"
        "\n");
  CHECK(good("ls", directory, {"--until", "2025-11-24T20:55:23", "--json"})
            .starts_with(R"({"stream":1,)"));
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
  const std::string shown = good("show", directory, {"1"});
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
  CHECK(cut.out == good("show", directory, {"1", "--rows"}));
  CHECK(cut.out == "[0,0,0,4,0,7,0]\n[1,4,0,2,0,16,0]\n[2,8,0,3,0,62,2]\n");
}

TEST_CASE("show names what is missing") {
  RecordedDirectory directory;
  record_two(directory);
  const Output output = run({"recordings", "show", directory.path(), "2"});
  CHECK(output.exit_code == 0);
  CHECK(output.err.starts_with("stream 2: positions 3 to 3, 0 events: "));
}

TEST_CASE("a name that several streams have does not choose one of them") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(bad("show", directory, {"call"}) ==
        "millrace recordings show: \"call\" is the name of 2 streams; give the number of one of "
        "them: 1, 2\n");
  CHECK(bad("show", directory, {"3"}) ==
        "millrace recordings show: there is no stream with the number or the name \"3\"\n");
}

TEST_CASE("verify says that sealed files are good, and cuts whole streams again") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("verify", directory).ends_with(", 2 streams, 1 whole, 0 lost parts: good\n"));
  CHECK(good("verify", directory, {"--rows"})
            .ends_with(", 1 whole, 0 lost parts, rows of 1 stream cut again: good\n"));
}

TEST_CASE("verify names the stream whose rows are not those of the service") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  stream.wrong_digest = 1;
  auto file = directory.file();
  stream.event({.kind = Kind::open}).frames(6).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  CHECK(good("verify", directory).ends_with(": good\n"));
  CHECK(bad("verify", directory, {"--rows"})
            .starts_with("0000000001.mcap: stream 1, position 6: the rows are not those that the "
                         "service cut\n"));
}

TEST_CASE("verify names missing slices, with their position") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  auto file = directory.file();
  stream.event({.kind = Kind::open}).frames(6).slice(file);
  stream.frames(2).skip();
  stream.frames(1).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  CHECK(bad("verify", directory)
            .starts_with("0000000001.mcap: stream 1, position 6: 1 event is missing, up to "
                         "position 8\n1 file, "));
}

TEST_CASE("verify finds each flipped byte of a small file") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  {
    auto file = directory.file();
    stream.event({.kind = Kind::open}).frames(6).event({.kind = Kind::end}).slice(file);
    REQUIRE(file.seal());
  }
  const std::string path = directory / "0000000001.mcap";
  const std::string whole = text_of(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::ofstream(path, std::ios::binary) << damaged;
    CAPTURE(i);
    const Output output = run({"recordings", "verify", directory.path()});
    REQUIRE(output.exit_code == 1);
    REQUIRE(output.out.starts_with("0000000001.mcap: "));
  }
}

TEST_CASE("a file that was left unsealed is not good until it is repaired") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  {
    auto file = directory.file();
    stream.event({.kind = Kind::open}).frames(6).slice(file);
    RecordedDirectory::commit(file);
  }
  std::ofstream(directory / "0000000001.mcap", std::ios::app) << "torn";
  CHECK(bad("verify", directory)
            .starts_with("0000000001.mcap: left unsealed, with 4 bytes after the last whole "
                         "chunk: run millrace recordings repair\n"));
  const std::string repaired = good("repair", directory);
  CHECK(repaired.starts_with("0000000001.mcap: sealed; 4 bytes cut after the last whole chunk\n"));
  CHECK(repaired.ends_with("1 file sealed\n"));
  CHECK(good("verify", directory).ends_with(": good\n"));
  CHECK(good("repair", directory) == "0 files sealed\n");
}

TEST_CASE("the file that a service is writing is good, and repair leaves it alone") {
  RecordedDirectory directory;
  directory.hold_writer_lock();
  TestStream stream(1, "call");
  auto file = directory.file();
  stream.event({.kind = Kind::open}).frames(6).slice(file);
  RecordedDirectory::commit(file);
  const std::string before = text_of(directory / "0000000001.mcap");
  CHECK(good("verify", directory).ends_with("1 stream, 0 whole, 0 lost parts: good\n"));
  CHECK(good("repair", directory) == "0 files sealed\n");
  CHECK(text_of(directory / "0000000001.mcap") == before);
}

TEST_CASE("files of other programs and versions are named, and the others are read") {
  RecordedDirectory directory;
  record_two(directory);
  std::ofstream(directory / "0000000009.mcap") << "not MCAP";
  const Output listed = run({"recordings", "ls", directory.path()});
  CHECK(listed.exit_code == 0);
  CHECK(listed.err.starts_with("0000000009.mcap: "));
  CHECK(listed.out.find(" whole ") != listed.out.npos);
  const Output verified = run({"recordings", "verify", directory.path()});
  CHECK(verified.exit_code == 1);
  CHECK(verified.out.starts_with("0000000009.mcap: "));
  CHECK(verified.out.find("\n2 files, ") != verified.out.npos);
}

TEST_CASE("export writes a file per stream, and a line with all else") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  CHECK(good("export", directory, {"--to", folder, "1"}) == "");
  const auto lines = json_lines(text_of(folder + "/streams.jsonl"));
  REQUIRE(lines.size() == 1);
  const json::object& line = lines[0].as_object();
  CHECK(line.at("stream") == 1);
  CHECK(line.at("files") == json::parse(R"([{"file":"1.wav","begin":0,"end":11}])"));
  CHECK(line.at("answers") ==
        json::parse(R"([{"answer":"json","seq":0,"batch":9,"data":{"text":"one"}}])"));
  CHECK(line.at("missing") == json::array());
  CHECK(line.at("rule").at("size") == 4);
  CHECK(line.at("totals").at("frames") == 9);
  std::string events;
  for (const json::value& event : line.at("events").as_array())
    events += std::string(event.at("event").as_string()) + ' ';
  CHECK(events == "open flush gap end ");
  CHECK(std::filesystem::file_size(folder + "/1.wav") == 44 + 11 * 2);
}

TEST_CASE("without streams, all are exported") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  CHECK(good("export", directory, {"--to", folder, "--format", "flac", "--by", "segment"}) == "");
  for (const char* name : {"1-1.flac", "1-2.flac", "2-1.flac"})
    CHECK(std::filesystem::exists(folder + "/" + name));
  CHECK(json_lines(text_of(folder + "/streams.jsonl")).size() == 2);
}

TEST_CASE("export never writes over an earlier export") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  good("export", directory, {"--to", folder, "1"});
  CHECK(bad("export", directory, {"--to", folder, "2"}) ==
        "millrace recordings export: " + folder +
            ": has an export already; choose another folder\n");
  CHECK_FALSE(std::filesystem::exists(folder + "/2.wav"));
}

TEST_CASE("streams that are not audio have a line in the list, and no file") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    for (const std::uint64_t number : {1, 2}) {
      TestStream stream(number, "words");
      stream.meta.frames.features = true;
      stream.event({.kind = Kind::open}).frames(2).event({.kind = Kind::end}).slice(file);
    }
    REQUIRE(file.seal());
  }
  const std::string folder = directory / "audio";
  CHECK(bad("export", directory, {"--to", folder}) ==
        "stream 1, pipeline asr: no audio file: its frames are features, not audio: read it in "
        "Python, with millrace.recordings\n");
  const auto lines = json_lines(text_of(folder + "/streams.jsonl"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].at("files") == json::array());
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
  CHECK(good("rm", directory, {"1"}).starts_with("1 stream removed, "));
  CHECK(bad("show", directory, {"secret"}).find("there is no stream") != std::string::npos);
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
  CHECK(good("rm", directory, {"--name", "secret"}).starts_with("1 stream removed, "));
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
  CHECK(good("rm", directory, {"1"}) == "1 stream removed, 0 B freed\n");
  CHECK(text_of(directory / "0000000001.mcap") == before);
  CHECK(good("ls", directory) == "");
}

TEST_CASE("rm chooses streams by age") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("rm", directory, {"--before", "2025-11-24T20:55:22"}).starts_with("0 streams"));
  CHECK(good("rm", directory, {"--older-than", "9999999h"}).starts_with("0 streams"));
  CHECK(good("rm", directory, {"--before", "2025-11-24T20:55:23"}).starts_with("1 stream "));
  CHECK(good("rm", directory, {"--older-than", "1h"}).starts_with("1 stream "));
  CHECK(good("ls", directory) == "");
}

TEST_CASE("wrong arguments of the commands are named in one line") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(bad("rm", directory) ==
        "millrace recordings rm: exactly one of NUMBER, --name, --before "
        "and --older-than must be given\n");
  CHECK(bad("rm", directory, {"1", "99"}) == "millrace recordings rm: there is no stream 99\n");
  CHECK(bad("rm", directory, {"call"}) ==
        "millrace recordings rm: \"call\" must be the number of "
        "a stream; names go with --name\n");
  CHECK(bad("rm", directory, {"--name", "x"}) ==
        "millrace recordings rm: no stream has the name \"x\"\n");
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
