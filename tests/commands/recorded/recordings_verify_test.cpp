// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tests/commands/recorded/recordings_command.h"
#include "tests/support/sampled.h"

namespace millrace::recordings {
namespace {

TEST_CASE("verify says that sealed files are good, and cuts whole streams again") {
  RecordedDirectory directory;
  record_two(directory);
  CHECK(good("verify", directory).ends_with(", 2 streams, 1 whole, 0 lost parts: good\n"));
  CHECK(good("verify", directory, {"--rows"})
            .ends_with(", 1 whole, 0 lost parts, rows of 1 stream cut again: good\n"));
}

TEST_CASE("verify cuts streams that were opened anew from their position and row on") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  auto file = directory.file();
  stream.event({.count = 100, .rows = 7}).frames(6).slice(file);
  stream.event({.kind = Kind::gap, .count = 3}).frames(2).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
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

TEST_CASE("verify names a stream with a size that is not among those of its rule") {
  RecordedDirectory directory;
  TestStream stream(1, "call");
  stream.meta.rule = to_json({.spec = {.size = 4}, .sizes = {.sizes = SizeList({4, 8})}});
  auto file = directory.file();
  stream.event({.kind = Kind::open}).event({.kind = Kind::size, .count = 3}).frames(6);
  stream.event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
  CHECK(bad("verify", directory, {"--rows"})
            .starts_with("0000000001.mcap: stream 1, position 0: a size event has a size that the "
                         "rule does not allow\n"));
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
  for (std::size_t i = 0; i < whole.size(); i += test::byte_step()) {
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
                         "chunk: run millrace recordings repair '" +
                         directory.path() + "'\n"));
  const std::string repaired = good("repair", directory);
  CHECK(repaired.starts_with("0000000001.mcap: sealed; 4 bytes cut after the last whole chunk\n"));
  CHECK(repaired.ends_with("1 file sealed\n"));
  CHECK(good("verify", directory).ends_with(": good\n"));
  CHECK(good("repair", directory) == "0 files sealed\n");
}

TEST_CASE("a file that is repaired loses the streams that were removed") {
  RecordedDirectory directory;
  TestStream one(1, "removed-call"), two(2, "other-call");
  {
    auto file = directory.file();
    one.event({.kind = Kind::open}).slice(file);
    two.event({.kind = Kind::open}).slice(file);
    RecordedDirectory::commit(file);
  }
  recording::Directory::open(directory.path(), recording::Directory::For::writing)
      ->add_removed({1});
  const std::string file = directory / "0000000001.mcap";
  CHECK(text_of(file).find("removed-call") != std::string::npos);
  good("repair", directory);
  CHECK(text_of(file).find("removed-call") == std::string::npos);
  CHECK(text_of(file).find("other-call") != std::string::npos);
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

}  // namespace
}  // namespace millrace::recordings
