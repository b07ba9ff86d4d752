// SPDX-License-Identifier: Apache-2.0
// Removals that were interrupted, and removals from damaged files.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "recording/files/recording_file.h"
#include "tests/commands/recorded/recordings_command.h"
#include "tests/support/failing_disk.h"

namespace millrace::recordings {
namespace {

// As after a kill of `rm` before it has rewritten a file.
void interrupt_removal(const RecordedDirectory& directory, std::uint64_t stream) {
  directory.directory().add_removed({stream});
  std::ofstream(directory / "0000000001.mcap.new") << "audio of all streams";
  std::ofstream(directory / "removed.new") << "1";
}

void damage(const RecordedDirectory& directory, std::uint64_t offset) {
  std::fstream bytes(directory / "0000000001.mcap", std::ios::in | std::ios::out);
  bytes.seekp(static_cast<std::streamoff>(offset));
  bytes.put('\xaa');
}

// Flips a bit of the samples of a chunk.
void damage_chunk(const RecordedDirectory& directory, std::size_t chunk) {
  const auto file = recording::RecordingFile::open(directory.directory(), 1);
  damage(directory, file->chunks()[chunk].offset + 1000);
}

// Writes whole streams to the next file.
void record(RecordedDirectory& to, const std::vector<std::uint64_t>& numbers, bool sealed = true) {
  auto file = to.file();
  for (const std::uint64_t number : numbers) {
    TestStream stream(number, "caller-" + std::to_string(number));
    stream.event({.kind = Kind::open}).frames(600).event({.kind = Kind::end}).slice(file);
    RecordedDirectory::commit(file);
  }
  if (sealed) REQUIRE(file.seal());
}

// A file with a whole stream in each of three chunks.
void record_three(RecordedDirectory& to) { record(to, {1, 2, 3}); }

bool is_on_disk(const RecordedDirectory& directory, const std::string& text) {
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    if (entry.path().string().find(".mcap") != std::string::npos &&
        text_of(entry.path()).find(text) != std::string::npos)
      return true;
  return false;
}

TEST_CASE("rm and repair delete the catalog of an earlier version, and readers ignore it") {
  RecordedDirectory directory;
  record_three(directory);
  const std::string catalog = directory / "catalog.sqlite";
  const auto make = [&] { std::ofstream(catalog) << "no database"; };
  make();
  CHECK_THAT(good("ls", directory), Catch::Contains("caller-1"));
  CHECK(std::filesystem::exists(catalog));
  good("rm", directory, {"--name", "caller-1"});
  CHECK_FALSE(std::filesystem::exists(catalog));
  make();
  good("repair", directory);
  CHECK_FALSE(std::filesystem::exists(catalog));
}

TEST_CASE("a catalog that cannot be deleted is named, and stops neither rm nor repair") {
  RecordedDirectory directory;
  record_three(directory);
  const std::string catalog = directory / "catalog.sqlite";
  std::filesystem::create_directory(catalog);
  CHECK_THAT(bad("rm", directory, {"--name", "caller-1"}), Catch::Contains(catalog + ": "));
  CHECK_FALSE(is_on_disk(directory, "caller-1"));
  record(directory, {4}, false);
  const std::string output = bad("repair", directory);
  CHECK_THAT(output, Catch::Contains(catalog + ": ") && Catch::Contains("1 file sealed"));
}

TEST_CASE("repair deletes a catalog that is left without recording files") {
  RecordedDirectory directory;
  std::ofstream(directory / "lock");
  std::ofstream(directory / "catalog.sqlite") << "names of callers";
  CHECK(good("repair", directory) == "0 files sealed\n");
  CHECK_FALSE(std::filesystem::exists(directory / "catalog.sqlite"));
}

TEST_CASE("rm deletes the index of training, which has the names of removed streams") {
  RecordedDirectory directory;
  record_three(directory);
  std::filesystem::create_directory(directory / ".millrace");
  std::ofstream(directory / ".millrace/recordings.asr") << "caller-1";
  good("rm", directory, {"--name", "caller-1"});
  CHECK(std::filesystem::is_empty(directory / ".millrace"));
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
  std::ofstream(directory / "0000000002.mcap") << "This is no recording file, but text.\n";
  const Output removed = run({"recordings", "rm", directory.path(), "--number", "1"});
  CHECK(removed.exit_code == 1);
  CHECK(removed.err == "0000000002.mcap: is not an MCAP file\n");
  CHECK(removed.out.find("when the cause is gone, run millrace recordings repair") !=
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

TEST_CASE("rm prints what it cuts from each file that it seals") {
  RecordedDirectory directory;
  record(directory, {1, 2}, false);
  record(directory, {3, 4});
  std::filesystem::resize_file(directory / "0000000001.mcap",
                               std::filesystem::file_size(directory / "0000000001.mcap") - 500);
  const std::string out = good("rm", directory, {"--number", "3"});
  CHECK(out.starts_with("0000000001.mcap: sealed; "));
  CHECK(out.find(" bytes cut after the last whole chunk\nremoved stream 3, ") != std::string::npos);
}

TEST_CASE("rm fails if it seals a file of which a committed chunk is lost") {
  RecordedDirectory directory;
  record(directory, {1, 2});
  record(directory, {3, 4});
  const std::uint64_t size = std::filesystem::file_size(directory / "0000000001.mcap");
  damage_chunk(directory, 1);
  damage(directory, size - 60);  // the summary
  const Output removed = run({"recordings", "rm", directory.path(), "--number", "3"});
  CHECK(removed.exit_code == 1);
  CHECK(
      removed.err.starts_with("0000000001.mcap: sealed; 0 bytes cut after the last whole chunk, "));
  CHECK(removed.err.ends_with(" bytes lost in damaged chunks\n"));
}

TEST_CASE("on a full disk rm first deletes the files that have no other stream") {
  RecordedDirectory directory;
  record(directory, {1, 2});
  record(directory, {2, 3});
  record(directory, {3});
  record(directory, {4});
  test::FailingDisk disk;
  disk.write = ENOSPC;
  disk.gets_space = true;
  CHECK(good("rm", directory, {"--number", "2", "3"}).find("2 streams removed, ") !=
        std::string::npos);
  CHECK(directory.directory().list() == std::vector<recording::FileNumber>{1, 4});
  CHECK_FALSE(is_on_disk(directory, "caller-2"));
  CHECK(good("verify", directory).ends_with("2 streams, 2 whole, 0 lost parts: good\n"));
}

TEST_CASE("on a full disk rm deletes also the newest file, if no process writes the directory") {
  RecordedDirectory directory;
  record(directory, {1, 2});
  REQUIRE(directory.directory().keep_next_stream(2));
  const std::vector<std::string> all{"--number", "1", "2"};
  test::FailingDisk disk;
  disk.write = ENOSPC;
  {
    const Output removed = run({"recordings", "rm", directory.path(), "--number", "1"});
    CHECK(removed.exit_code == 1);
    CHECK(removed.err.find("removed: No space left on device\n") != std::string::npos);
  }
  disk.gets_space = true;
  CHECK(good("rm", directory, all).find("2 streams removed, ") != std::string::npos);
  CHECK(directory.directory().list().empty());
  CHECK(directory.directory().next_stream() == 3);
  CHECK(directory.directory().removed() == std::set<std::uint64_t>{1, 2});
}

TEST_CASE("the newest file stays beside a process that writes the directory, also on a full disk") {
  RecordedDirectory directory;
  record(directory, {1, 2});
  directory.hold_writer_lock();
  test::FailingDisk disk;
  disk.write = ENOSPC;
  bad("rm", directory, {"--number", "1", "2"});
  CHECK(directory.directory().list().size() == 1);
}

TEST_CASE("rm that selects no stream writes nothing") {
  RecordedDirectory directory;
  record_three(directory);
  CHECK(good("rm", directory, {"--before", "2020-01-01"}) == "0 streams removed, 0 B freed\n");
  CHECK_FALSE(std::filesystem::exists(directory / "removed"));
}

TEST_CASE("a temporary file is deleted also if no recording file is left, and verify names it") {
  RecordedDirectory directory;
  std::ofstream(directory / "0000000001.mcap.new") << "audio of all streams";
  std::ofstream(directory / "removed.new") << "1";
  const std::string problems = bad("verify", directory);
  for (const char* name : {"0000000001.mcap.new", "removed.new"})
    CHECK(problems.find(name + std::string(": left by a process that was killed: run millrace "
                                           "recordings repair ")) != std::string::npos);
  CHECK(good("repair", directory) == "0 files sealed\n");
  CHECK_FALSE(is_on_disk(directory, "audio of all streams"));
  CHECK(good("verify", directory).ends_with(": good\n"));
}

TEST_CASE("a temporary file is no problem while a process writes the directory") {
  RecordedDirectory directory;
  record_three(directory);
  directory.hold_writer_lock();
  std::ofstream(directory / "0000000001.mcap.new") << "audio of all streams";
  CHECK(good("verify", directory).ends_with(": good\n"));
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
