// SPDX-License-Identifier: Apache-2.0
#include "tests/training/catalogs/catalog_under_test.h"
#include "training/catalogs/selection.h"

namespace millrace::training {

TEST_CASE("joined catalogs are one after the other") {
  AudioFolder calls, noise_folder;
  calls.add("a.wav", 100, 1);
  calls.add("b.wav", 200, 2);
  const Samples hum = noise_folder.add("hum.wav", 300, 3);
  const auto first = open_good({.path = calls.path()});
  const auto second = open_good({.path = noise_folder.path()});
  const auto joined = join({first, second});
  REQUIRE(joined.has_value());
  const Catalog& catalog = **joined;
  CHECK(catalog.size() == 3);
  CHECK(catalog.parts() == std::vector<std::uint64_t>{0, 2, 3});
  CHECK(catalog.name(1) == "b");
  CHECK(catalog.name(2) == "hum");
  CHECK(catalog.frames(2) == 300);
  CHECK(read_all<std::int16_t>(catalog, 2) == hum);
  CHECK(catalog.digest() != first->digest());
  CHECK(catalog.digest() != (*join({second, first}))->digest());
}

TEST_CASE("a catalog decodes unless to read each stream is to copy its frames") {
  constexpr int flac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16, deep = SF_FORMAT_WAV | SF_FORMAT_PCM_24;
  AudioFolder copied, decoded, other_rate, deeper, cut;
  copied.add("a.wav", 100, 1);
  decoded.add("b.wav", 100, 2);
  decoded.add("c.flac", 100, 3, {.format = flac});
  other_rate.add("d.wav", 100, 4, {.rate = 8000});
  deeper.add("e.wav", 100, 5, {.format = deep});
  const auto wav = open_good({.path = copied.path()}), mixed = open_good({.path = decoded.path()});
  CHECK_FALSE(wav->decodes());
  CHECK(mixed->decodes());
  CHECK(open_good({.path = deeper.path()})->decodes());
  CHECK(open_good({.path = other_rate.path(), .rate = 16'000, .channels = 1, .convert = true})
            ->decodes());
  CHECK_FALSE((*join({wav, wav}))->decodes());
  CHECK((*join({wav, mixed}))->decodes());
  const Selection parts{.longest = 50};
  CHECK_FALSE((*select_streams(wav, parts))->decodes());
  CHECK((*select_streams(mixed, parts))->decodes());
}

TEST_CASE("catalogs of several types are not joined") {
  AudioFolder one, other;
  one.add("a.wav", 100, 1);
  other.add("a.wav", 100, 1, {.rate = 8000});
  const auto joined = join({open_good({.path = one.path()}), open_good({.path = other.path()})});
  REQUIRE(joined.has_error());
  CHECK_THAT(joined.error().message,
             Catch::StartsWith("catalog 2 has 8000 frames per second of 1 values (s16)"));
}

}  // namespace millrace::training
