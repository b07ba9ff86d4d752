// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tests/recording/reader/moved_streams.h"
#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
namespace {

using recordings::RecordedDirectory;
using recordings::TestStream;
using Kind = Event::Kind;

// Samples of TestStream: the value of the frame at position p is p + 1.
Samples positions(int first, int count) {
  Samples values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<std::int16_t>(first + i + 1));
  return values;
}

void seal(recording::FileWriter& file) { REQUIRE(file.seal().has_value()); }

// A finished stream with events, and one without.
struct Recorded {
  Recorded() {
    ::setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
    auto file = directory.file();
    TestStream first(1, "call"), second(2, "call");
    first.meta.options = R"({"language":"en"})";
    first.event({.kind = Kind::open}).frames(6).text(Kind::message, R"(["Hugo"])").frames(4);
    first.event({.kind = Kind::flush, .mark = 7});
    first.slice(file);
    first.event({.kind = Kind::gap, .cause = Cause::rejected, .count = 5}).frames(20);
    first.event({.kind = Kind::end});
    first.slice(file);
    second.event({.kind = Kind::open}).frames(8).text(Kind::set, R"({"a":1})");
    second.event({.kind = Kind::end});
    second.slice(file);
    seal(file);
  }
  SharedCatalog open(const std::string& pipeline = {}) const {
    return open_good({.path = directory.path(), .pipeline = pipeline});
  }

  RecordedDirectory directory;
};

// Damages the chunk of the first file, without a change of its size and time.
void damage_first_file(const RecordedDirectory& directory) {
  const std::string path = directory / recording::Directory::file_name(1);
  const auto recordings = std::move(*recording::Recordings::open(directory.path()));
  const auto chunk = (*recordings->file(1))->chunks().front();
  const auto time = std::filesystem::last_write_time(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(chunk.offset + chunk.bytes / 2));
  file << "damage";
  file.close();
  std::filesystem::last_write_time(path, time);
}

// Stream 1 was lost at position 14, and continues at position 8 with row 2: stream 3. Its rows have
// two frames of right context.
struct Moved {
  explicit Moved(int parts = 2) {
    ::setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
    first.meta.options = R"({"user":"ada"})";
    write(directory, first, {open(), frames(14), abort_stream()});
    TestStream other(2, "other");
    write(directory, other, {open(), frames(5), end()});
    if (parts == 2) record_last();
  }
  void record_last() { write(directory, last, {open(8, 2), frames(6), end()}); }

  RecordedDirectory directory;
  TestStream first = recordings::part_of(1, 0, Spec{.size = 4, .right = 2});
  TestStream last = recordings::part_of(3, 1, Spec{.size = 4, .right = 2});
};

}  // namespace

TEST_CASE("finished recordings are a catalog with events and options, without messages") {
  const Recorded recorded;
  const auto catalog = recorded.open();
  REQUIRE(catalog->size() == 2);
  CHECK(catalog->frame_type() == FrameType{});
  CHECK_FALSE(catalog->decodes());
  CHECK(catalog->name(0) == "call");
  CHECK(catalog->name(1) == "call");
  CHECK(catalog->meta(0) == R"({"language":"en"})");
  CHECK(catalog->frames(0) == 30);
  CHECK(!catalog->has_events(1));
  REQUIRE(catalog->has_events(0));
  const auto events = catalog->events(0);
  REQUIRE(events.size() == 2);
  CHECK(events[0].event.kind == Kind::flush);
  CHECK(events[0].event.mark == 7u);
  CHECK(events[0].frame == 10);
  CHECK(events[1].event.kind == Kind::gap);
  CHECK(events[1].event.cause == Cause::rejected);
  CHECK(events[1].event.count == 5);
  CHECK(events[1].frame == 10);
}

TEST_CASE("a recording that was opened anew has its open among its events, and its own frames") {
  RecordedDirectory directory;
  ::setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
  auto file = directory.file();
  TestStream stream(1, "call");
  stream.event({.count = 100, .rows = 7}).frames(6).event({.kind = Kind::gap, .count = 4});
  stream.frames(3).event({.kind = Kind::end});
  stream.slice(file);
  seal(file);
  for (int opened = 0; opened < 2; ++opened) {  // the second time by its index
    const auto catalog = open_good({.path = directory.path()});
    REQUIRE(catalog->frames(0) == 9);
    const auto events = catalog->events(0);
    REQUIRE(events.size() == 2);
    CHECK(events[0].event.opened_anew());
    CHECK(events[0].event.count == 100);
    CHECK(events[0].event.rows == 7);
    CHECK(events[0].frame == 0);
    CHECK(events[1].event.kind == Kind::gap);
    CHECK(events[1].frame == 6);
    Samples expected = positions(100, 6);
    for (const std::int16_t value : positions(110, 3)) expected.push_back(value);
    CHECK(read_all<std::int16_t>(*catalog, 0) == expected);
  }
}

TEST_CASE("an extent gives the former streams of a directory that was recorded into") {
  RecordedDirectory directory;
  ::setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
  const auto record = [&](std::uint64_t number, bool ends) {
    auto file = directory.file();
    TestStream stream(number, "call " + std::to_string(number));
    stream.event({.kind = Kind::open}).frames(static_cast<int>(number));
    if (ends) stream.event({.kind = Kind::end});
    stream.slice(file);
    seal(file);
  };
  record(3, true);
  record(5, true);  // 4 ends later
  const auto before = open_good({.path = directory.path()});
  CHECK(before->extent() == R"({"last":5,"missing":[[0,2],[4,4]]})");
  record(4, true);
  record(6, true);
  const auto after = open_good({.path = directory.path()});
  CHECK(after->size() == 4);
  CHECK(after->digest() != before->digest());
  const auto former = open_good({.path = directory.path(), .extent = before->extent()});
  REQUIRE(former->size() == 2);
  CHECK(former->digest() == before->digest());
  CHECK(former->name(1) == "call 5");
  CHECK(former->extent() == before->extent());
  CHECK(read_all<std::int16_t>(*former, 1) == read_all<std::int16_t>(*after, 2));
  for (const char* extent : {"nonsense", R"({"last":2,"missing":[]})"})
    CHECK_FALSE(open_catalog({.path = directory.path(), .extent = extent}).has_value());
}

TEST_CASE(
    "a stream that was opened anew is one stream, with the name and options of its first part") {
  const Moved moved;
  const auto catalog = open_good({.path = moved.directory.path()});
  REQUIRE(catalog->size() == 2);
  CHECK(catalog->name(0) == "call");
  CHECK(catalog->meta(0) == R"({"user":"ada"})");
  CHECK(catalog->name(1) == "other");
  REQUIRE(catalog->frames(0) == 16);
  Samples expected = positions(0, 10);
  for (const std::int16_t value : positions(8, 6)) expected.push_back(value);
  CHECK(read_all<std::int16_t>(*catalog, 0) == expected);
  CHECK(read_all<std::int16_t>(*catalog, 0, 7) == expected);  // across the parts
  const auto events = catalog->events(0);
  REQUIRE(events.size() == 1);
  CHECK(events[0].event.kind == Kind::open);
  CHECK(events[0].event.count == 8);
  CHECK(events[0].event.rows == 2);
  CHECK(events[0].frame == 10);
}

TEST_CASE("an extent from before a stream was opened anew has its first part alone") {
  Moved moved(1);
  const auto before = open_good({.path = moved.directory.path()});
  CHECK(before->frames(0) == 14);
  moved.record_last();
  const auto after = open_good({.path = moved.directory.path()});
  CHECK(after->frames(0) == 16);
  CHECK(after->extent() == R"({"last":3,"missing":[[0,0]]})");
  const auto former = open_good({.path = moved.directory.path(), .extent = before->extent()});
  CHECK(former->digest() == before->digest());
  CHECK(read_all<std::int16_t>(*former, 0) == positions(0, 14));
}

TEST_CASE("a stream with a part that is being recorded is left out") {
  Moved moved(1);
  moved.directory.hold_writer_lock();
  auto file = moved.directory.file();
  moved.last.event(open(8, 2)).frames(3).slice(file);
  RecordedDirectory::commit(file);
  const auto catalog = open_good({.path = moved.directory.path()});
  REQUIRE(catalog->size() == 1);
  CHECK(catalog->name(0) == "other");
}

TEST_CASE("the parts of a stream that has not changed are not read again") {
  Moved moved;
  CountedSettings counted(moved.directory.path());
  const auto before = open_good(counted.settings);
  damage_first_file(moved.directory);  // would be missing if it were read
  auto file = moved.directory.file(9);
  TestStream more(9, "more");
  more.event(open()).frames(1).event(end()).slice(file);
  seal(file);
  const auto after = open_good(counted.settings);
  CHECK(counted.made == 2);
  REQUIRE(after->size() == 3);
  CHECK(after->frames(0) == before->frames(0));
  CHECK(after->events(0).size() == 1);
}

TEST_CASE("a part that was deleted is a read error of its stream") {
  const Moved moved;
  const auto catalog = open_good({.path = moved.directory.path()});
  std::filesystem::remove(moved.directory / recording::Directory::file_name(3));
  const auto readers = catalog->reader();
  const auto opened = readers->open(0);
  REQUIRE(opened.has_error());
  CHECK_THAT(opened.error().message, Catch::EndsWith("stream 3: was deleted"));
}

TEST_CASE("frames of recordings are counted without gaps, across slices") {
  const Recorded recorded;
  const auto catalog = recorded.open();
  Samples expected = positions(0, 10);
  for (const std::int16_t value : positions(15, 20)) expected.push_back(value);
  CHECK(read_all<std::int16_t>(*catalog, 0) == expected);
  CHECK(read_all<std::int16_t>(*catalog, 0, 7) == expected);
  CHECK(read_all<std::int16_t>(*catalog, 1) == positions(0, 8));
}

TEST_CASE("a missing part of a recording is a gap with the cause recorder") {
  RecordedDirectory directory;
  auto file = directory.file();
  TestStream stream(1, "call");
  stream.event({.kind = Kind::open}).frames(10);
  stream.slice(file);
  stream.frames(6);
  stream.skip();
  stream.frames(4);
  stream.slice(file);
  seal(file);
  const auto catalog = open_good({.path = directory.path()});
  REQUIRE(catalog->size() == 1);
  CHECK(catalog->frames(0) == 14);
  const auto events = catalog->events(0);
  REQUIRE(events.size() == 2);
  CHECK(events[0].event.kind == Kind::gap);
  CHECK(events[0].event.cause == Cause::recorder);
  CHECK(events[0].event.count == 6);
  CHECK(events[1].event.kind == Kind::abort);
  CHECK(events[1].frame == 14);
}

TEST_CASE("streams that are being recorded are left out") {
  RecordedDirectory directory;
  directory.hold_writer_lock();
  auto file = directory.file();
  TestStream open(1, "open"), finished(2, "finished");
  open.event({.kind = Kind::open}).frames(10);
  open.slice(file);
  finished.event({.kind = Kind::open}).frames(8).event({.kind = Kind::end});
  finished.slice(file);
  RecordedDirectory::commit(file);
  const auto catalog = open_good({.path = directory.path()});
  REQUIRE(catalog->size() == 1);
  CHECK(catalog->name(0) == "finished");
}

TEST_CASE("the index of recordings is made again for a new file, and keeps the streams it has") {
  Recorded recorded;
  CountedSettings counted(recorded.directory.path());
  const auto before = open_good(counted.settings);
  open_good(counted.settings);
  CHECK(counted.made == 1);
  auto file = recorded.directory.file(3);
  TestStream third(3, "third");
  third.event({.kind = Kind::open}).frames(9).event({.kind = Kind::reset});
  third.event({.kind = Kind::end});
  third.slice(file);
  seal(file);
  const auto after = open_good(counted.settings);
  CHECK(counted.made == 2);
  REQUIRE(after->size() == 3);
  CHECK(after->events(0).size() == 2);
  CHECK(after->events(2).size() == 1);
  CHECK(after->digest() != before->digest());
  open_good(counted.settings);
  CHECK(counted.made == 2);
}

TEST_CASE("a stream that is removed while the index is made is not in the next one") {
  Recorded recorded;
  CountedSettings counted(recorded.directory.path());
  counted.settings.progress = [&](std::uint64_t done, std::uint64_t) {
    if (done == 0) recorded.directory.directory().add_removed({1});
  };
  CHECK(open_good(counted.settings)->size() == 2);
  CHECK(recorded.open()->size() == 1);
}

TEST_CASE("recordings of several types need the pipeline") {
  Recorded recorded;
  auto file = recorded.directory.file(3);
  TestStream third(3, "third");
  third.meta.pipeline = "telephone";
  third.meta.frames.rate = 8000;
  third.event({.kind = Kind::open}).frames(9).event({.kind = Kind::end});
  third.slice(file);
  seal(file);
  CHECK_THAT(error_of({.path = recorded.directory.path()}), Catch::EndsWith("give the pipeline"));
  CHECK(recorded.open("asr")->size() == 2);
  CHECK(recorded.open("telephone")->frame_type().rate == 8000);
  CHECK_THAT(error_of({.path = recorded.directory.path(), .pipeline = "x"}),
             Catch::EndsWith("has no finished stream of the pipeline \"x\""));
}

TEST_CASE("recordings are not converted") {
  const Recorded recorded;
  CHECK(error_of({.path = recorded.directory.path(), .frames = Element::f32}) ==
        recorded.directory.path() + ": was recorded as s16, and recordings are not converted");
  CHECK_THAT(error_of({.path = recorded.directory.path(), .rate = 8000}),
             Catch::Contains("not 8000 frames per second"));
}

TEST_CASE("a recording that was deleted is a read error of its stream") {
  const Recorded recorded;
  const auto catalog = recorded.open();
  std::filesystem::remove(recorded.directory / recording::Directory::file_name(1));
  const auto opened = catalog->reader()->open(0);
  REQUIRE(opened.has_error());
  CHECK(opened.error().fault == DataFault::read);
  CHECK_THAT(opened.error().message, Catch::Contains("stream 1"));
  std::ofstream(recorded.directory / recording::Directory::file_name(1)) << "no recording file";
  const auto damaged = catalog->reader()->open(0);
  REQUIRE(damaged.has_error());
  CHECK(damaged.error().fault == DataFault::read);
  CHECK_THAT(damaged.error().message, Catch::EndsWith("stream 1: damaged: file 1"));
}

}  // namespace millrace::training
