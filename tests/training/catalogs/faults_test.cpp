// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <limits>

#include "tests/support/descriptor_limit.h"
#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;
constexpr int flac_16 = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
constexpr int float_wav = SF_FORMAT_WAV | SF_FORMAT_FLOAT;

// Reads rows of 1000 frames until an error.
struct Failure {
  explicit Failure(const Catalog& catalog) : reader(catalog.reader()) {
    auto opened = reader->open(0);
    if (!opened) {
      error = opened.error();
      return;
    }
    stream = std::move(*opened);
    for (; at < catalog.frames(0); at += 1000) {
      const auto frames = stream->frames(at, 1000);
      if (frames) continue;
      error = frames.error();
      return;
    }
  }
  std::unique_ptr<CatalogReader> reader;
  std::unique_ptr<FrameReader> stream;
  std::uint64_t at = 0;  // the row with the error
  std::optional<ReadError> error;
};

void check(const Failure& failure, DataFault fault, const std::string& path) {
  REQUIRE(failure.error);
  CHECK(failure.error->fault == fault);
  CHECK_THAT(failure.error->message, Catch::StartsWith(path + ": "));
}

}  // namespace

TEST_CASE("a missing file is a read error") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  fs::remove(folder / "a.wav");
  check(Failure(*catalog), DataFault::read, folder / "a.wav");
}

TEST_CASE("a file that was cut before it is opened has another length") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  fs::resize_file(folder / "a.wav", 44 + 2 * 20'000);
  const Failure failure(*catalog);
  check(failure, DataFault::length, folder / "a.wav");
  CHECK_THAT(failure.error->message, Catch::EndsWith("ends after 20000 of 40000 frames"));
}

TEST_CASE("a file that is cut while it is read has another length from there on") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  const auto stream = open_stream(*reader, 0);
  REQUIRE(stream->frames(0, 1000).has_value());
  fs::resize_file(folder / "a.wav", 44 + 2 * 2500);
  CHECK(stream->frames(1000, 1000).has_value());
  for (const std::uint64_t begin : {2000, 30'000}) {
    const auto frames = stream->frames(begin, 1000);
    REQUIRE(frames.has_error());
    CHECK(frames.error().fault == DataFault::length);
    CHECK(frames.error().message ==
          folder / "a.wav" + ": was cut while it was read, to 5044 bytes");
  }
}

TEST_CASE("a file that is replaced or deleted while it is read is read to its end") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  folder.add("b.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  const auto replaced = open_stream(*reader, 0), deleted = open_stream(*reader, 1);
  REQUIRE(replaced->frames(0, 1000).has_value());
  REQUIRE(deleted->frames(0, 1000).has_value());
  const Samples before = read<std::int16_t>(*open_stream(*reader, 0), 39'000, 1000);
  folder.add("new", 40'000, 2);
  fs::rename(folder / "new", folder / "a.wav");
  fs::remove(folder / "b.wav");
  CHECK(read<std::int16_t>(*replaced, 39'000, 1000) == before);
  CHECK(deleted->frames(39'000, 1000).has_value());
}

TEST_CASE("a file that is replaced between two readers is opened again") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  REQUIRE(open_stream(*reader, 0)->frames(0, 1000).has_value());
  const Samples now = folder.add("new", 40'000, 2);
  fs::rename(folder / "new", folder / "a.wav");
  CHECK(read<std::int16_t>(*open_stream(*reader, 0), 0, 40'000) == now);
}

TEST_CASE("a file that is rewritten in place between two readers is read again") {
  AudioFolder folder;
  const int format = GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, flac_16);
  const auto write = [&](std::uint32_t seed) {
    Samples samples = folder.add("a.wav", 40'000, seed, {.format = format});
    fs::last_write_time(folder / "a.wav", fs::file_time_type(std::chrono::seconds(seed)));
    return samples;
  };
  write(1);
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  for (int again = 0; again < 2; ++again)  // a step back: all frames of a compressed file are kept
    for (const std::uint64_t begin : {30'000, 1000})
      REQUIRE(open_stream(*reader, 0)->frames(begin, 1000).has_value());
  const Samples now = write(2);
  CHECK(read<std::int16_t>(*open_stream(*reader, 0), 1000, 1000) ==
        part_of_samples(now, 1000, 1000));
}

TEST_CASE("too many open files are no error of a file") {
  AudioFolder folder;
  folder.add("a.wav", 1000, 1, {.format = GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, flac_16)});
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  CHECK(open_stream(*catalog->reader(), 0)->frames(0, 10).has_value());
  const DescriptorLimit limit(0);
  CHECK_THROWS_WITH(reader->open(0),
                    Catch::StartsWith(folder / "a.wav: cannot be opened: Too many open files; "));
}

TEST_CASE("files that exceed half of the descriptors are opened for each read") {
  AudioFolder folder;
  std::vector<Samples> samples;
  for (std::uint32_t i = 0; i < 100; ++i)
    samples.push_back(folder.add(std::to_string(100 + i) + ".wav", 40'000, i));
  const auto catalog = open_good({.path = folder.path()});
  const auto reader = catalog->reader();
  open_stream(*reader, 0);
  const DescriptorLimit limit(60);
  std::vector<std::unique_ptr<FrameReader>> streams;
  for (std::uint64_t i = 0; i < 100; ++i) streams.push_back(open_stream(*reader, i));
  for (std::uint64_t i = 0; i < 100; ++i)
    for (const std::uint64_t begin : {0, 20'000})
      REQUIRE(read<std::int16_t>(*streams[i], begin, 5000) ==
              part_of_samples(samples[i], begin, 5000));
  folder.add("199.wav", 40'000, 200);
  fs::last_write_time(folder / "199.wav", fs::file_time_type(std::chrono::seconds(1)));
  CHECK(streams.back()->frames(30'000, 1000).error().message ==
        folder / "199.wav" + ": was changed while it was read");
}

TEST_CASE("a file that was cut before its index was made has the length of its header") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  fs::resize_file(folder / "a.wav", 44 + 2 * 20'000);
  const auto catalog = open_good({.path = folder.path()});
  CHECK(catalog->frames(0) == 40'000);
  check(Failure(*catalog), DataFault::length, folder / "a.wav");
}

TEST_CASE("a file that was replaced by a longer one has another length") {
  AudioFolder folder;
  const int format = GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                              SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  folder.add("a.wav", 40'000, 1, {.format = format});
  const auto catalog = open_good({.path = folder.path()});
  folder.add("a.wav", 50'000, 1, {.format = format});
  const Failure failure(*catalog);
  check(failure, DataFault::length, folder / "a.wav");
  CHECK_THAT(failure.error->message,
             Catch::EndsWith("; millrace index '" + folder.path() + "' makes the index again"));
}

TEST_CASE("a file of a manifest that was changed names the manifest to index again") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  write_text(folder / "m.tsv", "path\na.wav\n");
  const auto catalog = open_good({.path = folder / "m.tsv"});
  folder.add("a.wav", 50'000, 1);
  const Failure failure(*catalog);
  check(failure, DataFault::length, folder / "a.wav");
  CHECK_THAT(failure.error->message,
             Catch::EndsWith("; millrace index '" + folder / "m.tsv" + "' makes the index again"));
}

TEST_CASE("a file that was replaced by one of another format is a format error") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1);
  const auto catalog = open_good({.path = folder.path()});
  folder.add("a.wav", 40'000, 1, {.rate = 8000});
  check(Failure(*catalog), DataFault::format, folder / "a.wav");
}

TEST_CASE("a file that was only touched is read") {
  AudioFolder folder;
  folder.add("a.wav", 4000, 1);
  const auto catalog = open_good({.path = folder.path()});
  fs::last_write_time(folder / "a.wav", fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(!Failure(*catalog).error);
}

TEST_CASE("a damaged file is a read error at the row of the damage, each time") {
  AudioFolder folder;
  folder.add("a.wav", 40'000, 1, {.format = flac_16});
  std::string bytes = content_of(folder / "a.wav");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  write_text(folder / "a.wav", bytes);
  const auto catalog = open_good({.path = folder.path()});
  Failure failure(*catalog);
  check(failure, DataFault::read, folder / "a.wav");
  CHECK(failure.at >= 15'000);
  CHECK(failure.at <= 20'000);
  CHECK(failure.stream->frames(failure.at, 1000).has_error());
  CHECK(failure.stream->frames(0, 1000).has_value());
  CHECK(Failure(*catalog).at == failure.at);
}

TEST_CASE("a value that is not finite is a format error at its row") {
  AudioFolder folder;
  std::vector<float> values(40'000, 0.5f);
  values[20'500] = std::numeric_limits<float>::infinity();
  write_audio(folder / "a.wav", values, {.format = float_wav});
  const auto catalog = open_good({.path = folder.path()});
  const Failure failure(*catalog);
  check(failure, DataFault::format, folder / "a.wav");
  CHECK(failure.at == 20'000);
  CHECK(Failure(*catalog).at == 20'000);
}

TEST_CASE("an Ogg file without some of its pages has another length") {
  AudioFolder folder;
  folder.add("a.wav", 80'000, 1, {.format = SF_FORMAT_OGG | SF_FORMAT_VORBIS});
  std::string bytes = content_of(folder / "a.wav");
  for (std::size_t i = 0; i < 3000; ++i) bytes[bytes.size() / 2 + i] = 0;
  write_text(folder / "a.wav", bytes);
  const auto catalog = open_good({.path = folder.path()});
  check(Failure(*catalog), DataFault::length, folder / "a.wav");
}

}  // namespace millrace::training
