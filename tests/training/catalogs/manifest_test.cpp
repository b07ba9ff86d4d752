// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/manifest.h"

#include "tests/training/catalogs/catalog_under_test.h"

namespace millrace::training {
namespace {

std::vector<ManifestEntry> parsed(const std::string& text, ManifestForm form) {
  const auto entries = parse_manifest(text, form);
  if (!entries) FAIL(entries.error().message);
  return *entries;
}

std::string fault(const std::string& text, ManifestForm form) {
  const auto entries = parse_manifest(text, form);
  return entries ? std::string() : entries.error().message;
}

}  // namespace

TEST_CASE("the fields of a TSV manifest are path, name and meta") {
  const auto entries = parsed("text\tpath\tspeaker\r\nhi \"x\"\ta/1.wav\tann\r\n\r\n\t2.flac\t\r\n",
                              ManifestForm::tsv);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].path == "a/1.wav");
  CHECK(entries[0].name == "a/1");
  CHECK(entries[0].meta == R"({"text":"hi \"x\"","speaker":"ann"})");
  CHECK(entries[1].name == "2");
  CHECK(entries[1].meta == R"({"text":"","speaker":""})");
  CHECK(parsed("name\tpath\nn\ta.wav", ManifestForm::tsv)[0].name == "n");
  CHECK(parsed("path\na.wav", ManifestForm::tsv)[0].meta.empty());
}

TEST_CASE("values of a CSV manifest may have commas, quotes and line breaks in quotes") {
  const auto entries = parsed(
      "path,\"the text\",offset\r\n"
      "a.wav,\"one, \"\"two\"\"\nand three\",1.5\n"
      "\n"
      "\"b,c.wav\",,\n",
      ManifestForm::csv);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "a-1.5");
  CHECK(entries[0].meta == R"({"the text":"one, \"two\"\nand three","offset":1.5})");
  CHECK(entries[1].path == "b,c.wav");
  CHECK(entries[1].meta == R"({"the text":"","offset":null})");
}

TEST_CASE("a CSV manifest whose quotes do not fit is an error with its line") {
  const std::string text = "path,text\na.wav,\"x\ny\"\nb.wav,";
  const auto error = [&](const std::string& end) { return fault(text + end, ManifestForm::csv); };
  CHECK(error("z").empty());
  CHECK(error("\"z") == "line 4 has quotes that do not end, or text behind them");
  CHECK(error("\"z\"z") == "line 4 has quotes that do not end, or text behind them");
  CHECK(error("z,z") == "line 4 has 3 fields; the first line has 2");
}

TEST_CASE("the members of a JSON line are path, name and meta") {
  const auto entries = parsed(
      "{\"path\":\"a.wav\",\"n\":[1,2.5],\"t\":null}\n"
      "{\"audio_filepath\":\"/x/b.wav\",\"name\":\"b\"}\n",
      ManifestForm::json_lines);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "a");
  CHECK(entries[0].meta == R"({"n":[1,2.5E0],"t":null})");
  CHECK(entries[1].path == "/x/b.wav");
  CHECK(entries[1].name == "b");
  CHECK(entries[1].meta.empty());
}

TEST_CASE("a byte order mark at the beginning of a manifest is left out") {
  const std::string mark = "\xef\xbb\xbf";
  CHECK(parsed(mark + "path\na.wav\n", ManifestForm::tsv)[0].path == "a.wav");
  CHECK(parsed(mark + "{\"path\":\"a.wav\"}\n", ManifestForm::json_lines)[0].path == "a.wav");
}

TEST_CASE("offset and duration of a manifest are the part of the file, and of the name") {
  const auto entries = parsed(
      "{\"audio_filepath\":\"a.wav\",\"offset\":3.5,\"duration\":1}\n"
      "{\"path\":\"a.wav\",\"offset\":0,\"duration\":null}\n",
      ManifestForm::json_lines);
  CHECK(entries[0].offset == 3.5);
  CHECK(entries[0].duration == 1.0);
  CHECK(entries[0].name == "a-3.5");
  CHECK(entries[0].meta == R"({"offset":3.5E0,"duration":1})");
  CHECK(entries[1].name == "a");
  CHECK(!entries[1].duration);
  const auto tsv = parsed("path\toffset\tduration\na.wav\t2\t\n", ManifestForm::tsv);
  CHECK(tsv[0].offset == 2);
  CHECK(tsv[0].name == "a-2");
  CHECK(tsv[0].meta == R"({"offset":2,"duration":null})");
  for (const std::string two : {"2", " 2", "+2 "})
    CHECK(parsed(R"({"path":"a","offset":")" + two + "\"}", ManifestForm::json_lines)[0].offset ==
          2);
  CHECK(fault("{\"path\":\"a\",\"offset\":-1}", ManifestForm::json_lines) ==
        "line 1 \"offset\" must be a number of seconds");
  CHECK(fault("path\tduration\na\t0\n", ManifestForm::tsv) ==
        "line 2 \"duration\" must be a number of seconds, more than 0");
}

TEST_CASE("a manifest that is written from a manifest has the same parts of files") {
  AudioFolder folder;
  folder.add("a.wav", 16'000, 1);
  const auto [offset, duration] = GENERATE(std::pair("0.25", "0.5"), std::pair("0.5", ""));
  write_text(folder / "m.tsv",
             std::string("path\toffset\tduration\na.wav\t") + offset + "\t" + duration + "\n");
  const auto catalog = open_good({.path = folder / "m.tsv"});
  REQUIRE(write_manifest(*catalog, folder / "m.jsonl", {}).has_value());
  const auto written = open_good({.path = folder / "m.jsonl"});
  REQUIRE(written->size() == 1);
  CHECK(written->frames(0) == 8'000);
  CHECK(read_all<std::int16_t>(*written, 0) == read_all<std::int16_t>(*catalog, 0));
}

TEST_CASE("fields that choose a part of a file in another way are refused by name") {
  for (const std::string field :
       {"start", "end", "channel", "begin_frame", "start_time", "seg_start", "startTime",
        "channel_idx", "Offset", "supervision_start", "END-SECONDS", "to", "starttime"}) {
    const std::string refusal = "\"" + field + "\" is not supported: ";
    CHECK_THAT(fault("{\"path\":\"a\",\"" + field + "\":1}", ManifestForm::json_lines),
               Catch::Contains(refusal));
    CHECK_THAT(fault("{\"path\":\"a\",\"" + field + "\":\"0.1\"}", ManifestForm::json_lines),
               Catch::Contains(refusal));
    CHECK_THAT(fault("path\t" + field + "\na\t1.5\n", ManifestForm::tsv), Catch::Contains(refusal));
    CHECK(parsed("path\t" + field + "\na\tphone\n", ManifestForm::tsv).size() == 1);
  }
  for (const std::string time :
       {"0:01", "00:00:02.5", " 0.1", "0.1 ", "+0.1", "-1", ".5", "0.1s"}) {
    CHECK_THAT(fault("{\"path\":\"a\",\"end\":\"" + time + "\"}", ManifestForm::json_lines),
               Catch::Contains("\"end\" is not supported: "));
    CHECK_THAT(fault("path\tend\na\t" + time + "\n", ManifestForm::tsv),
               Catch::Contains("\"end\" is not supported: "));
  }
  CHECK_THAT(fault(R"({"path":"a","Start":1})", ManifestForm::json_lines),
             Catch::Contains("\"Start\" is not supported: "));
  CHECK_THAT(fault(R"({"path":"a","start":{"s":1}})", ManifestForm::json_lines),
             Catch::Contains("\"start\" is not supported: "));
  CHECK(parsed(R"({"path":"a","start":"","end":null,"channel":"- left"})", ManifestForm::json_lines)
            .size() == 1);
}

TEST_CASE("lists that choose a part of a file are refused, and what a file has is not") {
  for (const std::string field : {R"("segment":[1,2])", R"("segment":{"start":1,"end":2})",
                                  R"("channels":[0,1])", R"("time":[1,2])", R"("start":[1])"})
    CHECK_THAT(fault(R"({"path":"a",)" + field + "}", ManifestForm::json_lines),
               Catch::Contains(" is not supported: "));
  for (const std::string field :
       {R"("segment":7)", R"("segment_id":7)", R"("channels":2)", R"("num_channels":2)",
        R"("num_frames":16000)", R"("end_of_turn":1)", R"("start":null)", R"("words":[1,2])",
        R"("time":1700000000)", R"("9":1)", R"("":1)"})
    CHECK(parsed(R"({"path":"a",)" + field + "}", ManifestForm::json_lines).size() == 1);
}

TEST_CASE("paths and names of a manifest need not be UTF-8") {
  CHECK(parsed("path\ngr\xf6.wav\n", ManifestForm::tsv)[0].name == "gr\xf6");
  for (const char* line : {"{\"path\":\"gr\xf6.wav\"}", R"({"path":"gr\udcf6.wav"})"})
    CHECK(parsed(line, ManifestForm::json_lines)[0].path == "gr\xf6.wav");
  CHECK(parsed(R"({"path":"\ud83d\ude00.wav"})", ManifestForm::json_lines)[0].path ==
        "\xf0\x9f\x98\x80.wav");
}

TEST_CASE("errors of a manifest have the number of the line") {
  CHECK(fault("a\tb\n", ManifestForm::tsv) ==
        "line 1 must have the names of the fields; one of them is path");
  CHECK(fault("path\tx\tx\n", ManifestForm::tsv) == "line 1 has the field \"x\" twice");
  CHECK(fault("path\tx\na.wav\n", ManifestForm::tsv) ==
        "line 2 has 1 fields; the first line has 2");
  CHECK(fault("path\t\xff\na.wav\tb\n", ManifestForm::tsv) ==
        "line 1 has the name of a field that is not UTF-8");
  CHECK(fault("path\tx\na.wav\t\xff\n", ManifestForm::tsv) ==
        "line 2 has a field \"x\" that is not UTF-8");
  CHECK(fault("{\"path\":\"a\"}\n[]\n", ManifestForm::json_lines) ==
        "line 2 must be a JSON object");
  CHECK(fault("{\"path\":1}", ManifestForm::json_lines) == "line 1 \"path\" must be a string");
  CHECK(fault("{\"x\":1}", ManifestForm::json_lines) == "line 1 has no path");
  CHECK(fault("{\"path\":\"a\",\"x\":1e999}", ManifestForm::json_lines) ==
        "line 1 has a number that is too large");
}

TEST_CASE("a manifest is a catalog in the order of its lines") {
  AudioFolder folder;
  const Samples b = folder.add("wavs/b.wav", 200, 1);
  folder.add("wavs/a.wav", 100, 2);
  write_text(folder / "train.tsv",
             "path\tspeaker\nwavs/b.wav\tann\n" + folder / "wavs/a.wav" + "\tbob\n");
  const auto catalog = open_good({.path = folder / "train.tsv"});
  REQUIRE(catalog->size() == 2);
  CHECK(catalog->name(0) == "wavs/b");
  CHECK(catalog->meta(0) == R"({"speaker":"ann"})");
  CHECK(catalog->name(1) == folder / "wavs/a");
  CHECK(read_all<std::int16_t>(*catalog, 0) == b);
}

TEST_CASE("the index of a manifest is made again if the manifest or a file differs") {
  AudioFolder folder;
  folder.add("a.wav", 200, 1);
  folder.add("b.wav", 100, 2);
  write_text(folder / "m.jsonl", "{\"path\":\"a.wav\"}\n");
  CountedSettings counted(folder / "m.jsonl");
  open_good(counted.settings);
  open_good(counted.settings);
  CHECK(counted.made == 1);
  write_text(folder / "m.jsonl", "{\"path\":\"a.wav\"}\n{\"path\":\"b.wav\"}\n");
  CHECK(open_good(counted.settings)->size() == 2);
  open_good(counted.settings);
  CHECK(counted.made == 2);
  folder.add("b.wav", 101, 2);
  CHECK(open_good(counted.settings)->frames(1) == 101);
}

TEST_CASE("a manifest with a missing file or a repeated name is an error") {
  AudioFolder folder;
  folder.add("a.wav", 200, 1);
  write_text(folder / "m.tsv", "path\na.wav\nb.wav\n");
  CHECK(error_of({.path = folder / "m.tsv"}) ==
        folder / "b.wav" + ": cannot be read as audio: No such file or directory");
  write_text(folder / "m.tsv", "path\na.wav\na.wav\n");
  CHECK_THAT(error_of({.path = folder / "m.tsv"}), Catch::Contains("the name \"a\""));
  write_text(folder / "m.tsv", "path\tname\na.wav\t1\na.wav\t2\n");
  CHECK(open_good({.path = folder / "m.tsv"})->size() == 2);
  write_text(folder / "m.tsv", "path\n");
  CHECK(error_of({.path = folder / "m.tsv"}) == folder / "m.tsv" + ": has no audio files");
}

}  // namespace millrace::training
