// SPDX-License-Identifier: Apache-2.0
#include "tests/training/catalogs/catalog_under_test.h"
#include "tests/training/catalogs/npy_files.h"
#include "training/catalogs/companion_ratio.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

std::string rows(std::size_t count) { return "(" + std::to_string(count) + ",)"; }

template <class Value>
std::vector<Value> entries(FrameReader& stream, EntryRange range) {
  const auto read = stream.entries(0, range);
  if (!read) FAIL(read.error().message);
  return values_of<Value>(*read);
}

// Two streams, and a folder for their companions.
struct Labelled {
  Labelled() {
    folder.add("a.wav", 16'000, 1);
    folder.add("sub/b.wav", 16'100, 2);
    fs::create_directories(labels.path() + "/sub");
  }
  CatalogSettings settings() const {
    return {.path = folder.path(), .companions = {{.name = "vad", .from = labels.path()}}};
  }
  void write(std::size_t a, std::size_t b) const {
    write_npy(labels / "a.npy", "<f4", rows(a), ramp(a));
    write_npy(labels / "sub/b.npy", "<f4", rows(b), ramp(b));
  }
  // The error of opening a stream.
  ReadError fault(std::uint64_t stream, std::uint32_t frames_per_entry = 160) const {
    CatalogSettings given = settings();
    given.companions[0].frames_per_entry = frames_per_entry;
    const auto catalog = open_good(given);
    const auto opened = catalog->reader()->open(stream);
    REQUIRE(opened.has_error());
    return opened.error();
  }

  AudioFolder folder;
  TemporaryDirectory labels;
};

CompanionFormat format_of(const Catalog& catalog) {
  REQUIRE(catalog.companions().size() == 1);
  return catalog.companions().front();
}

}  // namespace

TEST_CASE("companions are files of a folder with the names of the streams") {
  Labelled labelled;
  labelled.write(100, 101);
  CatalogSettings settings = labelled.settings();
  settings.companions[0].frames_per_entry = 160;
  const auto catalog = open_good(settings);
  CHECK(format_of(*catalog) ==
        CompanionFormat{.name = "vad", .element = CompanionElement::f32, .frames_per_entry = 160});
  const auto reader = catalog->reader();
  const auto stream = open_stream(*reader, 1);
  CHECK(entries<float>(*stream, {.begin = 98, .count = 3}) == std::vector<float>{98, 99, 100});
  CHECK(read<std::int16_t>(*stream, 0, 16'100) == noise(16'100, 2));
  CHECK(catalog->digest() != open_good({.path = labelled.folder.path()})->digest());
}

TEST_CASE("a companion can have values per entry, and several entries per frame") {
  Labelled labelled;
  const std::vector<std::uint8_t> values(std::size_t{2} * 16'100 * 3, 7);
  write_npy(labelled.labels / "a.npy", "|u1", "(32000, 3)", values);
  write_npy(labelled.labels / "sub/b.npy", "|b1", "(32200, 3, 1)", values);
  const auto catalog = open_good(labelled.settings());
  CHECK(format_of(*catalog) ==
        CompanionFormat{
            .name = "vad", .element = CompanionElement::u8, .values = 3, .entries_per_frame = 2});
}

TEST_CASE("a companion can be audio") {
  Labelled labelled;
  const Samples clean = noise(16'000, 5);
  write_audio(labelled.labels / "a.flac", clean, {.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16});
  write_audio(labelled.labels / "sub/b.wav", noise(16'100, 6));
  const auto catalog = open_good(labelled.settings());
  CHECK(catalog->decodes());
  CHECK(format_of(*catalog) == CompanionFormat{.name = "vad", .element = CompanionElement::s16});
  const auto reader = catalog->reader();
  const auto stream = open_stream(*reader, 0);
  CHECK(entries<std::int16_t>(*stream, {.begin = 0, .count = 16'000}) == clean);
}

TEST_CASE("a companion can be a field of the manifest") {
  AudioFolder folder;
  folder.add("a.wav", 320, 1);
  folder.add("b.wav", 480, 2);
  write_npy(folder / "b.npy", "<i8", rows(3), std::vector<std::int64_t>{7, 8, 9});
  CatalogSettings settings{.path = folder / "m.jsonl",
                           .companions = {{.name = "y", .from = "label", .frames_per_entry = 160}}};
  SECTION("an array") {
    write_text(folder / "m.jsonl",
               "{\"path\":\"a.wav\",\"label\":[[1,2],[3,4]]}\n"
               "{\"path\":\"b.wav\",\"label\":[[5,6],[7,8],[9,10]]}\n");
    const auto catalog = open_good(settings);
    CHECK(format_of(*catalog) ==
          CompanionFormat{
              .name = "y", .element = CompanionElement::s32, .values = 2, .frames_per_entry = 160});
    const auto reader = catalog->reader();
    CHECK(entries<std::int32_t>(*open_stream(*reader, 1), {.begin = 1, .count = 2}) ==
          std::vector<std::int32_t>{7, 8, 9, 10});
  }
  SECTION("a path and an array of a given type") {
    write_text(folder / "m.jsonl",
               "{\"path\":\"a.wav\",\"label\":[1,2]}\n{\"path\":\"b.wav\",\"label\":\"b.npy\"}\n");
    settings.companions[0].element = CompanionElement::s64;
    const auto catalog = open_good(settings);
    const auto reader = catalog->reader();
    CHECK(entries<std::int64_t>(*open_stream(*reader, 0), {.begin = 0, .count = 2}) ==
          std::vector<std::int64_t>{1, 2});
    CHECK(entries<std::int64_t>(*open_stream(*reader, 1), {.begin = 0, .count = 3}) ==
          std::vector<std::int64_t>{7, 8, 9});
  }
}

TEST_CASE("a companion that is missing, damaged or of another length is an error of its stream") {
  Labelled labelled;
  labelled.write(100, 101);
  const std::string a = labelled.labels / "a.npy";
  SECTION("missing") {
    fs::remove(a);
    const ReadError error = labelled.fault(0);
    CHECK(error.fault == DataFault::read);
    CHECK_THAT(error.message, Catch::StartsWith(a + ": cannot be read: "));
  }
  SECTION("a folder") {
    fs::remove(a);
    fs::create_directory(a);
    const ReadError error = labelled.fault(0);
    CHECK(error.fault == DataFault::read);
    CHECK(error.message == a + ": is a folder");
  }
  SECTION("another length") {
    write_npy(a, "<f4", rows(99), ramp(99));
    const ReadError error = labelled.fault(0);
    CHECK(error.fault == DataFault::length);
    CHECK(error.message == a + ": has 99 entries; the 16000 frames of stream \"a\" need 100 with "
                               "frames_per_entry = 160, which was given");
  }
  SECTION("cut") {
    fs::resize_file(a, fs::file_size(a) - 1);
    CHECK(labelled.fault(0).fault == DataFault::length);
  }
  SECTION("another type") {
    write_npy(a, "<f2", rows(100), ramp(100));
    CHECK(labelled.fault(0).fault == DataFault::format);
  }
  SECTION("damaged") {
    write_text(a, "text");
    CHECK(labelled.fault(0).fault == DataFault::format);
  }
}

TEST_CASE("a companion that is cut while it is read is an error") {
  Labelled labelled;
  labelled.write(16'000, 16'100);
  const auto catalog = open_good(labelled.settings());
  const auto reader = catalog->reader();
  const auto stream = open_stream(*reader, 0);
  CHECK(stream->entries(0, {.begin = 0, .count = 1}).has_value());
  fs::resize_file(labelled.labels / "a.npy", 100);
  CHECK(stream->entries(0, {.begin = 15'000, .count = 1}).error().fault == DataFault::length);
}

TEST_CASE("companions that fit several ratios, or no ratio, are an error at the opening") {
  Labelled labelled;
  CatalogSettings settings = labelled.settings();
  labelled.write(2, 2);
  CHECK(error_of(settings) ==
        "companion \"vad\": the lengths fit 8050 to 15999 frames per entry: give frames_per_entry "
        "or entries_per_frame");
  settings.companions[0].frames_per_entry = 8100;
  CHECK(format_of(*open_good(settings)).frames_per_entry == 8100);
  settings.companions[0].frames_per_entry = {};
  labelled.write(100, 102);
  CHECK_THAT(error_of(settings), Catch::Contains("fits"));
  settings.companions[0].from = "absent";
  CHECK(error_of(settings) ==
        "companion \"vad\": absent must be a folder, or a field of the manifest");
}

TEST_CASE("the ratio of a companion follows from its lengths") {
  const auto found = [](std::vector<std::pair<std::uint64_t, std::uint64_t>> lengths) {
    CompanionRatio ratio;
    for (const auto& [frames, entries] : lengths)
      if (!ratio.add(frames, entries)) return std::string("none");
    if (!ratio.found()) return ratio.text();
    CompanionFormat format;
    ratio.set(format);
    return std::to_string(format.frames_per_entry) + ":" + std::to_string(format.entries_per_frame);
  };
  CHECK(found({{16'000, 16'000}}) == "1:1");
  CHECK(found({{16'000, 48'000}}) == "1:3");
  CHECK(found({{160'000, 1000}}) == "160:1");
  CHECK(found({{16'000, 100}}) == "160:1");  // exact
  CHECK(found({{16'000, 99}}) == "162 to 163 frames per entry");
  CHECK(found({{32'000, 200}, {1'600, 10}}) == "160:1");
  CHECK(found({{16'000, 100}, {16'100, 101}}) == "160 frames per entry, perhaps by coincidence");
  CHECK(found({{0, 0}, {10, 10}}) == "1:1");
  CHECK(found({{10, 0}}) == "none");
  CHECK(found({{100, 10}, {100, 11}}) == "none");
  CHECK(found({{100, 150}}) == "none");
  CHECK(found({{1, 1}, {2, 1}}) == "2 to 4294967295 frames per entry");
}

TEST_CASE("a ratio that lengths show by coincidence is asked for") {
  const auto found = [](const std::vector<std::uint64_t>& lengths, auto entries_of) {
    CompanionRatio ratio;
    for (const std::uint64_t length : lengths)
      if (!ratio.add(length, entries_of(length))) return false;
    return ratio.found();
  };
  const auto librosa = [](std::uint64_t frames) { return frames / 160 + 1; };
  const auto kaldi = [](std::uint64_t frames) { return (frames - 400) / 160 + 1; };
  const auto wav2vec = [](std::uint64_t frames) { return (frames - 400) / 320 + 1; };
  const auto floor = [](std::uint64_t frames) { return frames / 160; };
  const auto rounded = [](std::uint64_t frames) { return (frames + 80) / 160; };
  const auto ours = [](std::uint64_t frames) { return (frames + 159) / 160; };
  std::vector<std::uint64_t> close, multiples, narrow, wide;
  for (std::uint64_t i = 0; i < 20; ++i) {
    close.push_back(16'000 + i);
    multiples.push_back(8'000 + 800 * i);
    narrow.push_back(14'000 + 164 * i);
    wide.push_back(8'000 + 1'017 * i);
  }
  for (const auto& lengths : {close, multiples, {16'000, 15'900}}) CHECK(!found(lengths, librosa));
  CHECK(!found(narrow, kaldi));
  CHECK(!found(narrow, ours));
  CHECK(found(wide, ours));
  CHECK(!found({5931, 13309, 16866, 17216, 21288, 26951, 28374, 28860}, floor));
  // Lengths of all kinds: a wrong ratio is never found.
  std::uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525u + 1013904223u; };
  const auto no_other = [&](auto entries_of, std::uint64_t step) {
    for (int times = 0; times < 2'000; ++times) {
      const std::uint64_t shortest = 1'000u << (next() >> 28) % 7,
                          most = shortest * (2 + next() % 19);
      CompanionRatio ratio;
      bool fits = true;
      for (int stream = 0; stream < 10 && fits; ++stream) {
        const std::uint64_t length = shortest + next() % most;
        fits = ratio.add(length, entries_of(length));
      }
      CompanionFormat format;
      if (fits && ratio.found()) {
        ratio.set(format);
        if (format.frames_per_entry != step) return false;
      }
    }
    return true;
  };
  CHECK(no_other(librosa, 160));
  CHECK(no_other(kaldi, 160));
  CHECK(no_other(wav2vec, 320));
  CHECK(no_other(floor, 160));
  CHECK(no_other(rounded, 160));
  CHECK(no_other(ours, 160));
}

TEST_CASE("labels of absolute paths are found below their common parent") {
  AudioFolder folder;
  TemporaryDirectory labels;
  for (const std::string name : {"yes/0a", "no/0a"}) {
    folder.add(name + ".wav", 160, 1);
    fs::create_directories(fs::path(labels / name).parent_path());
    write_npy(labels / (name + ".npy"), "<f4", rows(160), ramp(160));
  }
  write_text(folder / "m.tsv",
             "path\n" + (folder / "yes/0a.wav") + "\n" + (folder / "no/0a.wav") + "\n");
  const CatalogSettings settings{.path = folder / "m.tsv",
                                 .companions = {{.name = "vad", .from = labels.path()}}};
  const auto catalog = open_good(settings);
  const auto reader = catalog->reader();
  for (const std::uint64_t stream : {0u, 1u}) CHECK(reader->open(stream).has_value());
}

TEST_CASE("two streams that would share a file of labels are an error") {
  AudioFolder folder;
  TemporaryDirectory labels;
  for (const std::string name : {"yes/0a", "no/0a"}) folder.add(name + ".wav", 160, 1);
  write_npy(labels / "0a.npy", "<f4", rows(160), ramp(160));
  const std::string yes = folder / "yes/0a.wav", no = folder / "no/0a.wav";
  write_text(folder / "m.tsv", "path\n" + yes + "\n" + no + "\n");
  CHECK_THAT(
      error_of({.path = folder / "m.tsv", .companions = {{.name = "vad", .from = labels.path()}}}),
      Catch::Contains("would share " + (labels / "0a.npy")));
  const std::string label = R"(","vad":")" + (labels / "0a.npy") + "\"}\n";
  write_text(folder / "n.jsonl", R"({"path":")" + yes + label + R"({"path":")" + no + label);
  CHECK_THAT(error_of({.path = folder / "n.jsonl", .companions = {{.name = "vad", .from = "vad"}}}),
             Catch::Contains("would share"));
}

TEST_CASE("a companion of another form is an error with both forms") {
  Labelled labelled;
  write_npy(labelled.labels / "a.npy", "<f4", "(16000, 2)", ramp(32'000));
  write_npy(labelled.labels / "sub/b.npy", "<f4", "(16100,)", ramp(16'100));
  CHECK_THAT(labelled.fault(0, 1).message,
             Catch::Contains("stream \"a\" has entries of 2 values (f32); those before have "
                             "entries of 1 value (f32)"));
}

}  // namespace millrace::training
