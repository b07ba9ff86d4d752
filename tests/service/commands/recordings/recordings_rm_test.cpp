// SPDX-License-Identifier: Apache-2.0
// Removals that were interrupted, and removals from damaged files.
#include <filesystem>
#include <fstream>

#include "recording/files/segment_file.h"
#include "tests/service/commands/recordings/recordings_command.h"

namespace millrace::recordings {
namespace {

// As after a kill of `rm` before it has rewritten a file.
void interrupt_removal(const RecordedDirectory& directory, std::uint64_t stream) {
  directory.directory().add_removed({stream});
  std::ofstream(directory / "0000000001.mcap.new") << "audio of all streams";
  std::ofstream(directory / "removed.new") << "1";
}

// A file with a whole stream in each of three chunks.
void record_three(RecordedDirectory& to) {
  auto file = to.file();
  for (const std::uint64_t number : {1, 2, 3}) {
    TestStream stream(number, "caller-" + std::to_string(number));
    stream.event({.kind = Kind::open}).frames(600).event({.kind = Kind::end}).slice(file);
    RecordedDirectory::commit(file);
  }
  REQUIRE(file.seal());
}

// Flips a bit of the samples of a chunk.
void damage_chunk(const RecordedDirectory& directory, std::size_t chunk) {
  const auto file = recording::SegmentFile::open(directory.directory(), 1);
  std::fstream bytes(directory / "0000000001.mcap", std::ios::in | std::ios::out);
  bytes.seekp(static_cast<std::streamoff>(file->chunks()[chunk].offset + 1000));
  bytes.put('\xaa');
}

bool is_on_disk(const RecordedDirectory& directory, const std::string& text) {
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    if (entry.path().string().find(".mcap") != std::string::npos &&
        text_of(entry.path()).find(text) != std::string::npos)
      return true;
  return false;
}

TEST_CASE("rm completes a removal that was interrupted, and says so") {
  RecordedDirectory directory;
  record_three(directory);
  interrupt_removal(directory, 1);
  REQUIRE(is_on_disk(directory, "caller-1"));
  const std::string output = bad("rm", directory, {"--name", "caller-1"});
  CHECK(
      output.starts_with("millrace recordings rm: no stream has the name \"caller-1\"; an earlier "
                         "removal was completed, "));
  CHECK_FALSE(is_on_disk(directory, "caller-1"));
  CHECK_FALSE(is_on_disk(directory, "audio of all streams"));
  CHECK_FALSE(std::filesystem::exists(directory / "removed.new"));
  CHECK(good("verify", directory).ends_with("2 streams, 2 whole, 0 lost parts: good\n"));
}

TEST_CASE("rm of another stream completes a removal that was interrupted") {
  RecordedDirectory directory;
  record_three(directory);
  interrupt_removal(directory, 1);
  CHECK(good("rm", directory, {"--number", "2"}).starts_with("an earlier removal was completed, "));
  CHECK(good("verify", directory).ends_with("1 stream, 1 whole, 0 lost parts: good\n"));
}

TEST_CASE("verify reports a removal that was interrupted, and repair completes it") {
  RecordedDirectory directory;
  record_three(directory);
  interrupt_removal(directory, 1);
  CHECK(bad("verify", directory)
            .starts_with("0000000001.mcap: still has streams that were removed: run millrace "
                         "recordings repair '" +
                         directory.path() + "'\n"));
  CHECK(good("repair", directory)
            .starts_with("0 files sealed\nremovals completed: 1 file rewritten, "));
  CHECK_FALSE(is_on_disk(directory, "caller-1"));
  CHECK_FALSE(is_on_disk(directory, "audio of all streams"));
  CHECK(good("verify", directory).ends_with(": good\n"));
}

TEST_CASE("rm names damage of other streams and keeps it, and verify still reports it") {
  RecordedDirectory directory;
  record_three(directory);
  damage_chunk(directory, 1);
  const Output removed = run({"recordings", "rm", directory.path(), "--number", "1"});
  CHECK(removed.exit_code == 1);
  CHECK(removed.out.find("\n1 stream removed, ") != std::string::npos);
  CHECK(removed.err.starts_with("0000000001.mcap: "));
  CHECK(
      removed.err.ends_with(" bytes in 1 chunk were damaged before, and stay as they are: slices "
                            "of streams 2 cannot be read\n"));
  CHECK(bad("verify", directory).find("slices of streams 2 are lost\n") != std::string::npos);
  CHECK(good("show", directory, {"--number", "3"}).find(R"("closed":"end","complete":true)") !=
        std::string::npos);
}

TEST_CASE("verify names the slices that rm had to leave out with a damaged chunk") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    TestStream one(1, "one"), two(2, "two");
    one.event({.kind = Kind::open}).frames(600).event({.kind = Kind::end}).slice(file);
    two.event({.kind = Kind::open}).frames(600).event({.kind = Kind::end}).slice(file);
    REQUIRE(file.seal());
  }
  damage_chunk(directory, 0);
  CHECK(bad("rm", directory, {"--number", "1"}).find("slices of streams 2 are lost\n") !=
        std::string::npos);
  CHECK(
      bad("verify", directory)
          .starts_with("0000000001.mcap: stream 2, position 0: 1 slice is lost, because of damage "
                       "before the file was rewritten\n"));
  CHECK(good("ls", directory).find(" not whole ") != std::string::npos);
}

TEST_CASE("rm fails if a file cannot be read, because it may have the stream") {
  RecordedDirectory directory;
  record_three(directory);
  std::ofstream(directory / "0000000002.mcap") << "This is no segment file, but text.\n";
  const Output removed = run({"recordings", "rm", directory.path(), "--number", "1"});
  CHECK(removed.exit_code == 1);
  CHECK(removed.err.find("0000000002.mcap: ") != std::string::npos);
  CHECK(removed.out.find("may still have them: run millrace recordings repair") !=
        std::string::npos);
  CHECK_FALSE(is_on_disk(directory, "caller-1"));
}

TEST_CASE("repair of a damaged file names the loss, and fails") {
  RecordedDirectory directory;
  {
    auto file = directory.file();
    TestStream one(1, "one");
    for (int slice = 0; slice < 3; ++slice) {
      if (slice == 0) one.event({.kind = Kind::open});
      one.frames(600).slice(file);
      RecordedDirectory::commit(file);
    }
  }
  damage_chunk(directory, 1);
  CHECK(bad("repair", directory).find(" lost in damaged chunks\n") != std::string::npos);
}

TEST_CASE("rm of all streams of an old file deletes the file") {
  RecordedDirectory directory;
  record_three(directory);
  REQUIRE(directory.file(4).seal());
  good("rm", directory, {"--number", "1", "2", "3"});
  CHECK_FALSE(std::filesystem::exists(directory / "0000000001.mcap"));
  CHECK(good("verify", directory).ends_with(": good\n"));
}

}  // namespace
}  // namespace millrace::recordings
