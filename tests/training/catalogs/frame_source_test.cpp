// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/frame_source.h"

#include <random>

#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
namespace {

constexpr int formats[]{SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                        SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III,
                        SF_FORMAT_WAV | SF_FORMAT_FLOAT};

// A catalog of one file, and its frames.
struct OneFile {
  explicit OneFile(int format, std::size_t frames = 30'000) {
    folder.add("a.wav", frames, 1, {.format = format});
    catalog = open_good({.path = folder.path(), .frames = Element::s16});
    all = read_all<std::int16_t>(*catalog, 0, catalog->frames(0));
  }
  Samples part(std::uint64_t begin, std::uint64_t count) const {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

  AudioFolder folder;
  SharedCatalog catalog;
  Samples all;
};

}  // namespace

TEST_CASE("windows with left context are those of the whole file") {
  const OneFile file(formats[GENERATE(range(0, 5))]);
  const auto reader = file.catalog->reader();
  const auto stream = open_stream(*reader, 0);
  for (std::uint64_t begin = 0; begin + 1600 + 400 <= file.all.size(); begin += 1600) {
    const std::uint64_t left = std::min<std::uint64_t>(begin, 240);
    REQUIRE(read<std::int16_t>(*stream, begin - left, left + 2000) ==
            file.part(begin - left, left + 2000));
  }
}

TEST_CASE("any order of reads gives the frames of the file") {
  const OneFile file(formats[GENERATE(range(0, 5))]);
  const auto reader = file.catalog->reader();
  std::mt19937 random(GENERATE(1u, 2u, 3u));
  auto stream = open_stream(*reader, 0);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t begin = random() % file.all.size();
    const std::uint64_t count = random() % std::min<std::uint64_t>(5000, file.all.size() - begin);
    REQUIRE(read<std::int16_t>(*stream, begin, count) == file.part(begin, count));
    if (random() % 8 == 0) stream = open_stream(*reader, 0);
  }
}

TEST_CASE("a mapped file has the frames of one that is read") {
  AudioFolder folder;
  const Samples all = folder.add("a.wav", 30'000, 1);
  const auto open = [&](Element element, bool mapped) {
    return open_good({.path = folder.path(), .frames = element, .mapped = mapped});
  };
  for (const bool mapped : {false, true}) {
    const auto catalog = open(Element::s16, mapped);
    const auto reader = catalog->reader();
    const auto stream = open_stream(*reader, 0);
    CHECK(read<std::int16_t>(*stream, 0, 30'000) == all);
    CHECK((content_of("/proc/self/maps").find(folder / "a.wav") != std::string::npos) == mapped);
  }
  CHECK(read_all<float>(*open(Element::f32, true), 0) ==
        read_all<float>(*open(Element::f32, false), 0));
}

TEST_CASE("a stream that starts at a later frame has the same frames") {
  const OneFile file(formats[GENERATE(range(0, 5))]);
  const auto reader = file.catalog->reader();
  const auto stream = open_stream(*reader, 0);
  CHECK(read<std::int16_t>(*stream, 17'777, 1000) == file.part(17'777, 1000));
}

TEST_CASE("two readers of a stream do not change each other's frames") {
  const OneFile file(formats[GENERATE(0, 1)]);
  const auto reader = file.catalog->reader();
  const auto one = open_stream(*reader, 0), other = open_stream(*reader, 0);
  const Bytes first = *one->frames(0, 1000);
  const Bytes second = *other->frames(20'000, 1000);
  CHECK(values_of<std::int16_t>(first) == file.part(0, 1000));
  CHECK(values_of<std::int16_t>(second) == file.part(20'000, 1000));
}

TEST_CASE("the next epoch of a decoded file keeps a window, too") {
  const OneFile file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 100'000);
  auto source = open_frames({.path = file.folder / "a.wav", .frames = 100'000});
  REQUIRE(source.has_value());
  for (int epoch = 0; epoch < 3; ++epoch)
    for (std::uint64_t begin = 0; begin < 100'000; begin += 1600)
      REQUIRE(values_of<std::int16_t>(
                  *(*source)->frames(begin, std::min<std::uint64_t>(1600, 100'000 - begin))) ==
              file.part(begin, std::min<std::uint64_t>(1600, 100'000 - begin)));
  CHECK((*source)->memory() < 40'000);
}

TEST_CASE("a decoder keeps a window of a long file") {
  const OneFile file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 400'000);
  auto source = open_frames({.path = file.folder / "a.wav", .frames = 400'000});
  REQUIRE(source.has_value());
  for (std::uint64_t begin = 0; begin < 400'000; begin += 1600)
    REQUIRE((*source)->frames(begin, 1600).has_value());
  CHECK((*source)->memory() < 40'000);
}

}  // namespace millrace::training
