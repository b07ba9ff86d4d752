// SPDX-License-Identifier: Apache-2.0
// Streams that were lost and opened anew.
#include <cstring>
#include <filesystem>

#include "tests/commands/recorded/recordings_command.h"

namespace millrace::recordings {
namespace {

TestStream part(std::uint64_t number, std::uint32_t epoch) {
  TestStream stream(number, "call");
  stream.meta.resumable = recording::ResumableKey{.epoch = epoch};
  stream.meta.resumable->stream.bytes[15] = 0xab;
  return stream;
}

// Stream 1 was lost at position 14, and continues at position 8 with row 2: stream 3. Stream 2 is
// another one with the same name.
void record_parts(RecordedDirectory& to) {
  TestStream first = part(1, 0), other(2, "call"), second = part(3, 4);
  auto file = to.file();
  first.event({.kind = Kind::open}).frames(14).answer(1, "1").answer(2, "2").slice(file);
  other.event({.kind = Kind::open}).event({.kind = Kind::end}).slice(file);
  second.event({.count = 8, .rows = 2}).frames(4).event({.kind = Kind::flush});
  second.frames(3).answer(2, "3").event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
}

}  // namespace

TEST_CASE("ls has one line for a stream that was opened anew") {
  RecordedDirectory directory;
  record_parts(directory);
  CHECK(good("ls", directory) ==
        " number  start                    duration  state      parts  pipeline  name\n"
        "      1  2025-11-24T20:55:22Z   0:00:00.00  whole          2  asr       call\n"
        "      2  2025-11-24T20:55:23Z   0:00:00.00  whole          1  asr       call\n");
  CHECK(good("ls", directory, {"--json", "--number", "3"}) ==
        R"({"number":1,"name":"call","pipeline":"asr","opened":"2025-11-24T20:55:22.000Z",)"
        R"("duration":0.0009375,"frames":21,"end":15,"whole":true,"open":false,)"
        R"("key":"000000000000000000000000000000ab","epoch":0,"parts":[)"
        R"({"number":1,"epoch":0,"frames":14,"begin":0,"end":14},)"
        R"({"number":3,"epoch":4,"frames":7,"begin":8,"end":15}]})"
        "\n");
}

TEST_CASE("a stream whose events between two parts are missing is not whole") {
  RecordedDirectory directory;
  TestStream first = part(1, 0), second = part(2, 1);
  auto file = directory.file();
  first.event({.kind = Kind::open}).frames(7).slice(file);
  second.event({.count = 8, .rows = 2}).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  CHECK(json_lines(good("ls", directory, {"--json"})).at(0).at("whole") == false);
}

TEST_CASE("show prints the events and rows of a stream that was opened anew") {
  RecordedDirectory directory;
  record_parts(directory);
  std::string shown;
  for (const json::value& line : json_lines(good("show", directory, {"--number", "1"}))) {
    const json::object& item = line.as_object();
    if (item.contains("event"))
      shown += std::string(item.at("event").as_string()) + ' ' +
               std::to_string(item.at("count").as_int64()) + ", ";
    if (item.contains("answer")) shown += "answer " + json::serialize(item.at("data")) + ", ";
  }
  CHECK(shown ==
        "open 0, frames 8, answer 1, open 8, frames 4, flush 0, frames 3, end 0, answer 3, ");
  CHECK(good("show", directory, {"--number", "3", "--rows"}) ==
        "[0,0,0,4,0,7,0]\n[1,4,0,4,0,0,0]\n[2,8,0,4,0,6,0]\n[3,12,0,0,0,16,0]\n"
        "[4,12,0,3,0,52,0]\n");
}

TEST_CASE("the times of all parts count from the first open") {
  RecordedDirectory directory;
  TestStream first = part(1, 0), second = part(2, 1);
  second.meta.opened_steady = 7'000'000'000;
  second.meta.opened_wall = first.meta.opened_wall + 30'000'000'000;
  auto file = directory.file();
  first.event({.kind = Kind::open}).frames(8).slice(file);
  second.event({.count = 8, .rows = 2}).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  const auto lines = json_lines(good("show", directory, {"call"}));
  CHECK(lines.at(0).at("at") == 0.25);
  CHECK(lines.at(2).at("at") == 30.25);
}

TEST_CASE("export writes each position of a stream that was opened anew once") {
  RecordedDirectory directory;
  record_parts(directory);
  const std::string folder = directory / "audio";
  good("export", directory, {"--to", folder, "--number", "1"});
  const auto lines = json_lines(text_of(folder + "/streams.jsonl"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("files") == json::parse(R"([{"file":"1.wav","begin":0,"end":15}])"));
  CHECK(lines[0].at("whole") == true);
  CHECK(lines[0].at("missing") == json::array());
  const std::string wav = text_of(folder + "/1.wav").substr(44);
  REQUIRE(wav.size() == 30);
  for (std::int16_t i = 0; i < 15; ++i) {
    std::int16_t value = 0;
    std::memcpy(&value, wav.data() + 2 * i, sizeof value);
    CHECK(value == i + 1);
  }
}

TEST_CASE("export by segment begins a file where a stream was opened anew") {
  RecordedDirectory directory;
  record_parts(directory);
  const std::string folder = directory / "audio";
  good("export", directory, {"--to", folder, "--number", "1", "--by", "segment"});
  CHECK(json_lines(text_of(folder + "/streams.jsonl")).at(0).at("files") ==
        json::parse(R"([{"file":"1-1.wav","begin":0,"end":8},{"file":"1-2.wav","begin":8,"end":12},
                        {"file":"1-3.wav","begin":12,"end":15}])"));
}

TEST_CASE("rm removes all parts of a stream") {
  RecordedDirectory directory;
  record_parts(directory);
  CHECK(good("rm", directory, {"--number", "1"})
            .starts_with("removed stream 1, call\nremoved stream 3, call\n2 streams removed"));
  const auto left = json_lines(good("ls", directory, {"--json"}));
  REQUIRE(left.size() == 1);
  CHECK(left[0].at("number") == 2);
}

}  // namespace millrace::recordings
