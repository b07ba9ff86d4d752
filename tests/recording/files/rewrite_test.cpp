// SPDX-License-Identifier: Apache-2.0
#include "recording/files/rewrite.h"

#include <catch2/catch.hpp>

#include "recording/files/recovery.h"
#include "tests/recording/files/three_streams.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Lines = std::vector<std::string>;

// One chunk has slices of streams 1 to 4, the next one slices of streams 4 and 5.
struct SharedChunk : ThreeStreams {
  SharedChunk() : ThreeStreams(false, 0) {
    std::filesystem::remove(path());
    auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
    TestStream four(4), five(5);
    for (TestStream* stream : {&one, &two, &three, &four}) stream->add(writer, 100);
    expect(writer.write());
    four.add(writer, 100);
    five.add(writer, 100, true);
    expect(writer.seal());
  }
};

}  // namespace

TEST_CASE("a file is rewritten without streams, whose numbers are not used again") {
  const ThreeStreams files(true);
  files.set_last_write(1'000'000'000);
  RecordingFile before = files.open();
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1, 3, 99}));
  RecordingFile after = files.open();
  CHECK(cleared.changed);
  CHECK(cleared.saved_bytes == before.size() - after.size());
  CHECK(cleared.damages.empty());
  CHECK(after.verify());
  CHECK(files.streams() == std::vector<std::uint64_t>{2});
  CHECK(after.head().first_stream == 4);
  CHECK(after.head().run == before.head().run);
  CHECK(after.head().id == before.head().id);
  CHECK(files.last_write().tv_sec == 1'000'000'000);
  const Messages all = read_all(before), left = read_all(after);
  CHECK(left.size() == 3);
  CHECK(is_part(left, all));
  CHECK_FALSE(std::filesystem::exists(files.path() + ".new"));
}

TEST_CASE("a file that has none of the streams is not rewritten") {
  const ThreeStreams files(true);
  const auto before = std::filesystem::last_write_time(files.path());
  CHECK_FALSE(expect(rewrite_without(files.directory, 1, {4, 5})).changed);
  CHECK(std::filesystem::last_write_time(files.path()) == before);
}

TEST_CASE("an unsealed file is not rewritten without streams") {
  const ThreeStreams files(false);
  const auto result = rewrite_without(files.directory, 1, {1});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error() == "0000000001.mcap: is not sealed; repair the file first");
}

TEST_CASE("the newest file stays without a stream, so that its numbers are known") {
  const ThreeStreams files(true);
  expect(rewrite_without(files.directory, 1, {1, 2, 3}));
  CHECK(files.streams().empty());
  CHECK(files.open().head().first_stream == 4);
  CHECK(files.open().verify());
}

TEST_CASE("a damaged chunk of other streams stays as it is, and is named") {
  const ThreeStreams files(true);
  RecordingFile before = files.open();
  const ChunkPlace damaged = before.chunks()[4];  // the second slice of stream 2
  files.flip(damaged.offset + 100);
  const std::string bytes = files.content(damaged);
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1}));
  CHECK(cleared.damages ==
        Lines{"0000000001.mcap: " + std::to_string(damaged.bytes) +
              " bytes in 1 chunk were damaged before, and stay as they are: slices of streams 2 "
              "cannot be read"});
  RecordingFile after = files.open();
  CHECK_FALSE(after.verify());
  REQUIRE(after.damages().size() == 1);
  const Damage& damage = after.damages()[0];
  CHECK(damage.why.ends_with(" has a wrong checksum: slices of streams 2 are lost"));
  CHECK(files.content({.offset = damage.offset, .bytes = damage.bytes}) == bytes);
  CHECK(read_all(after).size() == 5);
  const std::vector<StreamPart> parts = before.parts();
  CHECK(after.parts() == std::vector(parts.begin() + 1, parts.end()));
}

TEST_CASE("a damaged chunk of removed streams alone is not mentioned") {
  const ThreeStreams files(true);
  files.flip(files.open().chunks()[4].offset + 100);  // the second slice of stream 2
  CHECK(expect(rewrite_without(files.directory, 1, {2})).damages.empty());
  CHECK(files.open().verify());
}

TEST_CASE("a chunk that stays damaged is good again once its bytes are") {
  const ThreeStreams files(true);
  files.flip(files.open().chunks()[0].offset + 100);  // with the channel of stream 1
  expect(rewrite_without(files.directory, 1, {3}));
  RecordingFile damaged = files.open();
  CHECK(read_all(damaged).size() == 5);
  CHECK_FALSE(damaged.verify());
  files.flip(damaged.damages().at(0).offset + 100);
  RecordingFile file = files.open();
  CHECK(read_all(file).size() == 6);
}

TEST_CASE("a stream that is only in a damaged chunk stays in the summary") {
  const ThreeStreams files(true, 1);
  files.flip(files.open().chunks()[1].offset + 100);  // all of stream 2
  expect(rewrite_without(files.directory, 1, {1}));
  CHECK(files.streams() == std::vector<std::uint64_t>{2, 3});
  CHECK(files.open().channels().at(2).number == 2);
}

TEST_CASE("a damaged chunk of removed streams alone is no loss") {
  const ThreeStreams files(true);
  files.flip(files.open().chunks()[4].offset + 100);
  CHECK(expect(rewrite_without(files.directory, 1, {2})).damages.empty());
  CHECK(files.open().verify());
}

TEST_CASE("a damaged chunk of a stream that goes is left out, and its other streams are lost") {
  const SharedChunk files;
  const ChunkPlace damaged = files.open().chunks()[0];
  files.flip(damaged.offset + 100);
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1}));
  CHECK(cleared.damages ==
        Lines{"0000000001.mcap: " + std::to_string(damaged.bytes) +
              " bytes in 1 chunk were damaged before, and are left out, because a removed stream "
              "may have slices in them: slices of streams 2 to 4 are lost"});
  RecordingFile file = files.open();
  CHECK(read_all(file).size() == 2);
  CHECK(file.parts().size() == 4);
  for (const StreamPart& part : file.parts()) CHECK(part.lost == (part.stream <= 4));
  // The next rewrite does not forget it.
  expect(rewrite_without(files.directory, 1, {5}));
  CHECK(files.streams() == std::vector<std::uint64_t>{2, 3, 4});
  for (const StreamPart& part : files.open().parts()) CHECK(part.lost);
}

TEST_CASE("a sealed file with damaged metadata is rewritten") {
  const ThreeStreams files(true);
  files.flip(130);
  REQUIRE(files.open().head().run.empty());
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1}));
  CHECK(cleared.damages == Lines{"0000000001.mcap: the metadata of the file is damaged"});
  CHECK(files.streams() == std::vector<std::uint64_t>{2, 3});
  CHECK(files.open().head().first_stream == 4);
}
