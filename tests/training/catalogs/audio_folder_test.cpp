// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "base/half.h"
#include "tests/training/catalogs/catalog_under_test.h"
#include "training/catalogs/index/audio_faults.h"

namespace millrace::training {
namespace {

constexpr int flac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;

}  // namespace

TEST_CASE("a folder of audio files is a catalog sorted by path") {
  AudioFolder folder;
  const Samples b = folder.add("b.wav", 3000, 1);
  const Samples a = folder.add("sub/a.flac", 2000, 2, {.format = flac});
  folder.add("a.wav", 10, 3);
  folder.add(".hidden/c.wav", 10, 4);
  write_text(folder / "README.txt", "text");
  const auto catalog = open_good({.path = folder.path() + "/"});
  REQUIRE(catalog->size() == 3);
  CHECK(catalog->name(0) == "a");
  CHECK(catalog->name(1) == "b");
  CHECK(catalog->name(2) == "sub/a");
  CHECK(catalog->frames(1) == 3000);
  CHECK(catalog->frame_type() == FrameType{Element::s16, 1, 16000, false});
  CHECK(catalog->meta(1).empty());
  CHECK(!catalog->has_events(1));
  CHECK(catalog->parts() == std::vector<std::uint64_t>{0, 3});
  CHECK(read_all<std::int16_t>(*catalog, 1) == b);
  CHECK(read_all<std::int16_t>(*catalog, 2) == a);
}

TEST_CASE("frames of audio files are converted to the wanted type") {
  AudioFolder folder;
  const int format = GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  const Samples samples = folder.add("a.x.wav", 5000, 1, {.format = format, .channels = 2});
  const auto f32 = open_good({.path = folder.path(), .frames = Element::f32});
  const auto f16 = open_good({.path = folder.path(), .frames = Element::f16});
  const auto floats = read_all<float>(*f32, 0);
  const auto halves = read_all<std::uint16_t>(*f16, 0);
  REQUIRE(floats.size() == samples.size());
  REQUIRE(halves.size() == samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    REQUIRE(floats[i] == static_cast<float>(samples[i]) / 32768);
    REQUIRE(halves[i] == float_to_half(floats[i]));
  }
}

TEST_CASE("16-bit WAV files are read in place if they are mapped") {
  AudioFolder folder;
  folder.add("a.wav", 5000, 1);
  const auto catalog = open_good({.path = folder.path(), .mapped = true});
  const auto reader = catalog->reader();
  const auto stream = open_stream(*reader, 0);
  const Bytes all = *stream->frames(0, 5000);
  CHECK(stream->frames(100, 10)->data() == all.data() + 200);
}

TEST_CASE("a file of another rate is an error with the command that converts it") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  folder.add("it's b.flac", 10, 2, {.format = flac, .rate = 8000, .channels = 2});
  folder.add("c.wav", 10, 3, {.rate = 8000});
  const std::string b = folder / "it'\\''s b.flac";
  CHECK_THAT(error_of({.path = folder.path()}),
             Catch::StartsWith("2 of 3 files cannot be used:\n") &&
                 Catch::Contains("sox '" + b + "' -r 16000 -c 1"));
  std::filesystem::remove(folder / "it's b.flac");
  CHECK(error_of({.path = folder.path()}) ==
        folder / "c.wav" + ": has 8000 Hz and 1 channel, but " + folder / "a.wav" +
            " has 16000 Hz and 1 channel; set convert = true, or convert it: sox '" +
            folder / "c.wav" + "' -r 16000 -c 1 '" + folder / ".converted.wav" + "' && mv '" +
            folder / ".converted.wav" + "' '" + folder / "c.wav" + "'");
}

TEST_CASE("a printed command takes the name of a file for a file") {
  CHECK_THAT(conversion_command("|touch a.wav", 8000, 1),
             Catch::StartsWith("sox './|touch a.wav' -r 8000 -c 1 "));
  CHECK_THAT(conversion_command("/a[1].wav", 8000, 1),
             Catch::StartsWith("sox --no-glob '/a[1].wav' "));
  CHECK_THAT(conversion_command("../-a.wav", 8000, 1), Catch::StartsWith("sox '../-a.wav' "));
}

TEST_CASE("a catalog that does not have the wanted rate or channels is an error") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  CHECK(open_catalog({.path = folder.path(), .rate = 16000, .channels = 1}).has_value());
  CHECK_THAT(error_of({.path = folder.path(), .rate = 8000}),
             Catch::StartsWith(folder / "a.wav" +
                               ": has 16000 frames per second of 1 values, not 8000 frames") &&
                 Catch::Contains("-r 8000 -c 1"));
  CHECK(!error_of({.path = folder.path(), .channels = 2}).empty());
}

TEST_CASE("a file with an impossible rate is an error") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1, {.rate = 2'000'000'000});
  CHECK(error_of({.path = folder.path()}) ==
        folder / "a.wav" + ": has an impossible rate in its header");
}

TEST_CASE("a folder of audio files can have an entry with the name lock") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  write_text(folder / "lock", "");
  for (int time = 0; time < 2; ++time) CHECK(open_good({.path = folder.path()})->name(0) == "a");
}

TEST_CASE("names of streams are unique") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  folder.add("a.flac", 10, 2, {.format = flac});
  CHECK(error_of({.path = folder.path()}) ==
        folder.path() + ": two files have the name \"a\"; the names of streams must be unique");
}

TEST_CASE("a path without audio is an error") {
  AudioFolder folder;
  CHECK_THAT(error_of({.path = folder.path()}),
             Catch::Contains("has no audio files") && Catch::Contains("NpyFiles"));
  CHECK(error_of({.path = folder / "absent"}) == folder / "absent" + ": no such file or folder");
  write_text(folder / "a.txt", "");
  CHECK_THAT(error_of({.path = folder / "a.txt"}),
             Catch::Contains("must be a folder") && Catch::Contains("NpyFiles"));
  write_text(folder / "a.wav", "no audio");
  CHECK_THAT(error_of({.path = folder.path()}),
             Catch::StartsWith(folder / "a.wav" + ": cannot be read as audio: "));
}

TEST_CASE("a folder that contains itself by a link is an error") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  std::filesystem::create_directory_symlink(folder.path(), folder / "again");
  CHECK_THAT(error_of({.path = folder.path()}), Catch::Contains("contains itself"));
}

TEST_CASE("a list of files is a catalog in its order, with names below their common parent") {
  AudioFolder folder;
  const Samples b = folder.add("x/b.wav", 30, 1),
                a = folder.add("y/a.flac", 20, 2, {.format = flac});
  CatalogSettings settings;
  settings.files = {folder / "y/a.flac", folder / "x/b.wav"};
  const auto catalog = open_good(settings);
  REQUIRE(catalog->size() == 2);
  CHECK(catalog->name(0) == "y/a");
  CHECK(catalog->name(1) == "x/b");
  CHECK(read_all<std::int16_t>(*catalog, 0) == a);
  CHECK(read_all<std::int16_t>(*catalog, 1) == b);
  CHECK(!std::filesystem::exists(folder / ".millrace"));
  settings.files.push_back(folder / "x/b.wav");
  CHECK_THAT(error_of(settings), Catch::Contains("two files have the name \"x/b\""));
  settings.files.back() = folder / "absent.wav";
  CHECK_THAT(error_of(settings), Catch::Contains("absent.wav: cannot be read as audio"));
}

TEST_CASE("a single file is a catalog with its name") {
  AudioFolder folder;
  const Samples samples = folder.add("a.b.wav", 30, 1);
  const auto catalog = open_good({.path = folder / "a.b.wav"});
  REQUIRE(catalog->size() == 1);
  CHECK(catalog->name(0) == "a.b");
  CHECK(read_all<std::int16_t>(*catalog, 0) == samples);
  folder.add("a.b.wav", 31, 1);
  const auto opened = catalog->reader()->open(0);
  REQUIRE(opened.has_error());
  CHECK_THAT(opened.error().message, Catch::EndsWith("; open the files again"));
}

TEST_CASE("threads read a catalog at the same time") {
  AudioFolder folder;
  std::vector<Samples> expected;
  for (std::uint32_t i = 0; i < 8; ++i)
    expected.push_back(folder.add(std::to_string(i) + ".flac", 9000, i, {.format = flac}));
  const auto catalog = open_good({.path = folder.path()});
  std::vector<Samples> got(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { got[i] = read_all<std::int16_t>(*catalog, i, 777); });
  }
  CHECK(got == expected);
}

TEST_CASE("the digest depends on names, lengths and the type of the frames alone") {
  AudioFolder one, other, renamed, longer;
  one.add("a.wav", 100, 1);
  other.add("a.flac", 100, 2, {.format = flac});
  renamed.add("b.wav", 100, 1);
  longer.add("a.wav", 101, 1);
  const auto digest = [](const AudioFolder& folder, Element element) {
    return open_good({.path = folder.path(), .frames = element})->digest();
  };
  CHECK(digest(one, Element::s16) == digest(other, Element::s16));
  CHECK(digest(one, Element::s16) != digest(one, Element::f32));
  CHECK(digest(one, Element::s16) != digest(renamed, Element::s16));
  CHECK(digest(one, Element::s16) != digest(longer, Element::s16));
}

}  // namespace millrace::training
