// SPDX-License-Identifier: Apache-2.0
#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
TEST_CASE("a stream may be a part of its file, mapped, read or decoded") {
  AudioFolder folder;
  const auto [is_wav, mapped] =
      GENERATE(std::pair(true, true), std::pair(true, false), std::pair(false, false));
  const std::string file = is_wav ? "long.wav" : "long.flac";
  const int format = is_wav ? SF_FORMAT_WAV | SF_FORMAT_PCM_16 : SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  const Samples samples = folder.add(file, 160'000, 1, {.format = format});
  write_text(folder / "m.jsonl", R"({"path":")" + file + R"(","offset":3,"duration":1})" + "\n" +
                                     R"({"path":")" + file + R"(","offset":9.5})" + "\n" +
                                     R"({"path":")" + file + R"(","duration":9.995})" + "\n");
  for (int opening = 0; opening < 2; ++opening) {  // the second one has the index
    const auto catalog = open_good({.path = folder / "m.jsonl", .mapped = mapped});
    REQUIRE(catalog->size() == 3);
    CHECK(catalog->name(0) == "long-3");
    CHECK(read_all<std::int16_t>(*catalog, 0) == part_of_samples(samples, 48'000, 16'000));
    CHECK(read_all<std::int16_t>(*catalog, 1) == part_of_samples(samples, 152'000, 8'000));
    CHECK(read_all<std::int16_t>(*catalog, 2) == samples);  // the duration of all, rounded
  }
}

TEST_CASE("a part that ends behind its file, or has no frame, is an error that names the stream") {
  AudioFolder folder;
  folder.add("a.wav", 16'000, 1);
  for (const std::string part : {R"("offset":0.5,"duration":2)", R"("offset":0.99999)",
                                 R"("offset":0.50001,"duration":0.00001)"}) {
    write_text(folder / "m.jsonl", R"({"path":"a.wav","name":"b",)" + part + "}\n");
    CHECK(error_of({.path = folder / "m.jsonl"}) ==
          folder / "a.wav" + ": does not have the part of the stream \"b\": it has 16000 frames");
  }
}

TEST_CASE("a file that was cut is shorter than its index says, in every part") {
  AudioFolder folder;
  folder.add("a.wav", 16'000, 1);
  std::filesystem::resize_file(folder / "a.wav", 20'044);
  write_text(folder / "m.jsonl", R"({"path":"a.wav","offset":0.75})"
                                 "\n");
  const auto catalog = open_good({.path = folder / "m.jsonl"});
  const auto opened = catalog->reader()->open(0);
  REQUIRE(opened.has_error());
  CHECK(opened.error().message == folder / "a.wav" + ": ends after 10000 of 16000 frames");
}

TEST_CASE("all files that cannot be used are named, and the headers of the others are kept") {
  AudioFolder folder;
  for (int i = 0; i < 25; ++i) write_text(folder / ("bad" + std::to_string(i) + ".wav"), "x");
  folder.add("good1.wav", 100, 1);
  folder.add("good2.wav", 100, 2);
  folder.add("other.wav", 100, 3, {.rate = 8000});
  const std::string error = error_of({.path = folder.path()});
  CHECK_THAT(error, Catch::StartsWith("26 of 28 files cannot be used:\n  ") &&
                        Catch::Contains("bad0.wav: ") && Catch::EndsWith("\n  and 6 more"));
  CHECK(error_of({.path = folder.path()}) == error);

  CatalogSettings settings{.path = folder.path()};
  std::string skipped;
  settings.skips = [&skipped](const std::string& text) { skipped = text; };
  const auto catalog = open_good(settings);
  CHECK(skipped == error);
  CHECK(catalog->size() == 2);
  REQUIRE(write_manifest(*catalog, folder / "good.jsonl", {0}).has_value());
  const auto written = open_good({.path = folder / "good.jsonl"});
  CHECK(written->size() == 1);
  CHECK(written->name(0) == "good2");
}

TEST_CASE("the format of most files is that of the catalog") {
  AudioFolder folder;
  folder.add("a.wav", 100, 1, {.rate = 8000});
  folder.add("b.wav", 100, 2);
  folder.add("c.wav", 100, 3);
  CHECK_THAT(error_of({.path = folder.path()}),
             Catch::StartsWith(folder / "a.wav" + ": has 8000 Hz and 1 channel, but " +
                               folder / "b.wav" + " has 16000 Hz"));
}

TEST_CASE("streams without frames are named") {
  AudioFolder folder;
  folder.add("a.wav", 100, 1);
  folder.add("b.wav", 0, 2);
  CHECK(empty_streams_text(*open_good({.path = folder.path()})) ==
        "1 of 2 streams has no frames, and will be in no batch: \"b\"");
  std::filesystem::remove(folder / "b.wav");
  CHECK(!empty_streams_text(*open_good({.path = folder.path()})));
}

TEST_CASE("a file that is missing is named with one of the same name in another Unicode form") {
  AudioFolder folder;
  folder.add("gru\xcc\x88n.wav", 100, 1);  // decomposed
  write_text(folder / "m.tsv", "path\ngr\xc3\xbcn.wav\n");
  CHECK_THAT(error_of({.path = folder / "m.tsv"}), Catch::Contains("another Unicode form"));
  CHECK_THAT(error_of({.path = folder / "gr\xc3\xbcn.wav"}),
             Catch::Contains("another Unicode form"));
}

TEST_CASE("the address of a store is an error that says that only local files are read") {
  AudioFolder folder;
  write_text(folder / "m.tsv", "path\ns3://bucket/a.wav\n");
  for (const std::string& path : {folder / "m.tsv", std::string("s3://bucket/speech")})
    CHECK_THAT(error_of({.path = path}), Catch::Contains("; only local files are read: mount "));
}

TEST_CASE("names of files need not be UTF-8") {
  AudioFolder folder;
  const Samples samples = folder.add("gr\xf6.wav", 100, 1);
  const auto catalog = open_good({.path = folder.path()});
  CHECK(catalog->name(0) == "gr\xf6");
  CHECK(read_all<std::int16_t>(*catalog, 0) == samples);
  REQUIRE(write_manifest(*catalog, folder / "m.jsonl", {}).has_value());
  CHECK(open_good({.path = folder / "m.jsonl"})->name(0) == "gr\xf6");
}

}  // namespace millrace::training
