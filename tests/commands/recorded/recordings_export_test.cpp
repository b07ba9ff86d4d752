// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "tests/commands/recorded/recordings_command.h"

namespace millrace::recordings {
namespace {

TEST_CASE("export writes a file per stream, and a line with all else") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  CHECK(good("export", directory, {"--to", folder, "--number", "1"}) == "");
  const auto lines = json_lines(text_of(folder + "/streams.jsonl"));
  REQUIRE(lines.size() == 1);
  const json::object& line = lines[0].as_object();
  CHECK(line.at("number") == 1);
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

TEST_CASE("a stream of which a chunk is damaged is not exported as whole") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    TestStream(1, "call")
        .event({.kind = Kind::open})
        .frames(600)
        .event({.kind = Kind::end})
        .slice(file);
    REQUIRE(file.seal());
  }
  std::fstream file(directory / "0000000001.mcap", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4800);  // in the frames
  file << "damage";
  file.close();
  const std::string folder = directory / "audio";
  CHECK(bad("export", directory, {"--to", folder}) ==
        "stream 1: incomplete from position 0: damaged: file 1\n");
  const auto line = json_lines(text_of(folder + "/streams.jsonl"))[0];
  CHECK(line.at("missing").as_array().size() == 1);
  CHECK(line.at("whole") == false);
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

TEST_CASE("a stream that is selected twice is exported once") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  CHECK(good("export", directory, {"--to", folder, "call", "--number", "2", "2"}) == "");
  CHECK(json_lines(text_of(folder + "/streams.jsonl")).size() == 2);
}

TEST_CASE("only the user can read an export") {
  using std::filesystem::perms;
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "parent/audio";
  good("export", directory, {"--to", folder + "/", "--number", "1"});
  const auto mode = [](const std::string& path) {
    return std::filesystem::status(path).permissions();
  };
  CHECK(mode(folder) == perms::owner_all);
  for (const char* file : {"/1.wav", "/streams.jsonl"})
    CHECK(mode(folder + file) == (perms::owner_read | perms::owner_write));
}

TEST_CASE("export by segment refuses --gaps split") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(
      bad("export", directory, {"--to", directory / "audio", "--by", "segment", "--gaps", "split"})
          .ends_with("leave out --gaps split\n"));
}

TEST_CASE("export never writes over an earlier export") {
  RecordedDirectory directory;
  record_two(directory);
  const std::string folder = directory / "audio";
  good("export", directory, {"--to", folder, "--number", "1"});
  CHECK(bad("export", directory, {"--to", folder, "--number", "2"}) ==
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

}  // namespace
}  // namespace millrace::recordings
