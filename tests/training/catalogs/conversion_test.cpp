// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "tests/input/conversion.h"
#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
namespace {

struct FileKind {
  int format;
  int rate, channels;
};
constexpr FileKind kinds[]{{SF_FORMAT_WAV | SF_FORMAT_PCM_16, 44'100, 1},
                           {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16'000, 2},
                           {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 48'000, 2},
                           {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 8'000, 3}};
constexpr std::size_t frames_of_file = 50'001;

// What the service makes of the samples of a client, which come in messages of any length.
template <class Value>
std::vector<Value> served(const Samples& samples, const FileKind& kind, const FrameType& to) {
  std::mt19937 random(1);
  ClientFormat client{.values = static_cast<std::uint32_t>(kind.channels),
                      .rate = static_cast<double>(kind.rate)};
  if (client.values != to.values) client.channel = MeanOfChannels{};
  test::Conversion conversion(client, to);
  conversion.messages(std::as_bytes(std::span(samples)), random, 5000);
  conversion.drain();
  return values_of<Value>(conversion.frames.bytes);
}

CatalogSettings converting(const std::string& path) {
  return {.path = path, .rate = 16'000, .channels = 1, .convert = true};
}

}  // namespace

TEST_CASE("a converted file has the frames that the service makes of its samples") {
  const FileKind kind = kinds[GENERATE(range(0, 4))];
  AudioFolder folder;
  const Samples samples =
      folder.add("a.wav", frames_of_file, 1, {kind.format, kind.rate, kind.channels});
  folder.add("b.wav", frames_of_file, 2);  // and one that needs no conversion
  CatalogSettings settings = converting(folder.path());
  const auto s16 = open_good(settings);
  settings.frames = Element::f32;
  const auto f32 = open_good(settings);
  const auto expected = served<std::int16_t>(samples, kind, s16->frame_type());
  REQUIRE(s16->frames(0) == expected.size());
  CHECK(s16->frames(1) == frames_of_file);
  CHECK(read_all<std::int16_t>(*s16, 0, GENERATE(700, 20'000)) == expected);
  CHECK(read_all<float>(*f32, 0) == served<float>(samples, kind, f32->frame_type()));
}

TEST_CASE("any order of reads gives the frames of a file that is converted from its begin") {
  const FileKind kind = kinds[GENERATE(0, 2)];
  AudioFolder folder;
  const Samples samples =
      folder.add("a.wav", frames_of_file, 1, {kind.format, kind.rate, kind.channels});
  const auto catalog = open_good(converting(folder.path()));
  const auto all = served<std::int16_t>(samples, kind, catalog->frame_type());
  const auto reader = catalog->reader();
  auto stream = open_stream(*reader, 0);
  CHECK(read<std::int16_t>(*stream, all.size() - 1000, 1000) ==
        part_of_samples(all, all.size() - 1000, 1000));
  std::mt19937 random(GENERATE(1u, 2u));
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t begin = random() % all.size();
    const std::uint64_t count = random() % std::min<std::uint64_t>(5000, all.size() - begin);
    REQUIRE(read<std::int16_t>(*stream, begin, count) == part_of_samples(all, begin, count));
    if (random() % 8 == 0) stream = open_stream(*reader, 0);
  }
}

TEST_CASE("a part of a file is converted from its own begin to its own end") {
  AudioFolder folder;
  const FileKind kind{SF_FORMAT_WAV | SF_FORMAT_PCM_16, 44'100, 1};
  const Samples samples = folder.add("a.wav", 88'200, 1, {kind.format, kind.rate});
  write_text(folder / "m.jsonl", R"({"path":"a.wav","offset":0.5,"duration":1})"
                                 "\n"
                                 R"({"path":"a.wav","offset":1.5})"
                                 "\n");
  const auto catalog = open_good(converting(folder / "m.jsonl"));
  REQUIRE(catalog->size() == 2);
  CHECK(
      read_all<std::int16_t>(*catalog, 0) ==
      served<std::int16_t>(part_of_samples(samples, 22'050, 44'100), kind, catalog->frame_type()));
  CHECK(
      read_all<std::int16_t>(*catalog, 1) ==
      served<std::int16_t>(part_of_samples(samples, 66'150, 22'050), kind, catalog->frame_type()));
}

TEST_CASE("one sentence lists the files that are converted, also if there is an index") {
  AudioFolder folder;
  for (const char* name : {"a.wav", "b.wav", "c.wav", "d.wav"})
    folder.add(name, 100, 1, {.rate = 8000});
  folder.add("e.wav", 100, 1);
  for (int opening = 0; opening < 2; ++opening) {
    std::vector<std::string> sentences;
    CatalogSettings settings = converting(folder.path());
    settings.warn = [&](const std::string& sentence) { sentences.push_back(sentence); };
    open_good(settings);
    REQUIRE(sentences.size() == 1);
    CHECK(sentences[0] ==
          "4 of 5 files are converted to 16000 Hz and 1 channel: " + folder / "a.wav" +
              " (8000 Hz and 1 channel), " + folder / "b.wav" + " (8000 Hz and 1 channel), " +
              folder / "c.wav" + " (8000 Hz and 1 channel) and 1 more");
  }
}

TEST_CASE("without a rate, files are converted to the format of most files") {
  AudioFolder folder;
  folder.add("a.wav", 100, 1, {.rate = 8000});
  folder.add("b.wav", 100, 2, {.channels = 2});
  folder.add("c.wav", 100, 3, {.channels = 2});
  CHECK(error_of({.path = folder.path(), .convert = true}) ==
        "1 of 3 files cannot be converted to 16000 Hz and 2 channels:\n  " + folder / "a.wav" +
            ": has 1 channel; the pipeline takes 2");
  folder.add("a.wav", 100, 1, {.rate = 8000, .channels = 2});
  CHECK(open_good({.path = folder.path(), .convert = true})->frame_type() ==
        FrameType{Element::s16, 2, 16'000, false});
}

TEST_CASE("rates that the service does not convert are an error") {
  AudioFolder folder;
  folder.add("a.wav", 100, 1, {.rate = 4000});
  CHECK_THAT(
      error_of(converting(folder.path())),
      Catch::Contains("a.wav: has 4000 Hz; whole rates from 8000 to 192000 Hz are converted"));
  folder.add("a.wav", 100, 1);
  CatalogSettings settings = converting(folder.path());
  settings.rate = 12'000.5;
  CHECK_THAT(error_of(settings), Catch::Contains("are converted, to whole rates"));
}

TEST_CASE("the digest shows what is converted") {
  AudioFolder plain, converted;
  plain.add("a.wav", 100, 1);
  converted.add("a.wav", 100, 1, {.rate = 44'100});
  const auto digest = [](const CatalogSettings& settings) { return open_good(settings)->digest(); };
  CHECK(digest(converting(plain.path())) == digest({.path = plain.path()}));
  CHECK(digest(converting(converted.path())) != digest({.path = plain.path()}));
  CHECK(digest(converting(converted.path())) != digest({.path = converted.path()}));
}

TEST_CASE("an index of files of several rates is not used without a conversion") {
  AudioFolder folder;
  folder.add("a.wav", 100, 1);
  folder.add("b.wav", 100, 1);
  folder.add("c.wav", 100, 1, {.rate = 8000});
  open_good(converting(folder.path()));
  CHECK_THAT(error_of({.path = folder.path()}),
             Catch::Contains("c.wav: has 8000 Hz") && Catch::Contains("set convert = true"));
  CHECK(open_good(converting(folder.path()))->frames(2) == 200);
}

TEST_CASE("a converted file that was cut ends early") {
  AudioFolder folder;
  folder.add("a.wav", 44'100, 1, {.rate = 44'100});
  const auto catalog = open_good(converting(folder.path()));
  std::filesystem::resize_file(folder / "a.wav", 44 + 2 * 22'050);
  const auto opened = catalog->reader()->open(0);
  CHECK((opened.has_error() || (*opened)->frames(0, 16'000).has_error()));
}

}  // namespace millrace::training
