// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "recording/writer/page_pool.h"
#include "service/config/options.h"
#include "service/config/recording_options.h"
#include "tests/service/config/error_of.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

static_assert(recording_page == recording::PagePool::page_bytes);
static_assert(least_recording_pages == recording::PagePool::fewest_pages);

// A configuration with a directory, these keys of [recording], and these of the pipeline.
std::string text(const std::string& recording, const std::string& pipeline) {
  return "[recording]\ndirectory = \"/r\"\n" + recording + "\n[[pipeline]]\n" + pipeline;
}

Options options_from(const std::string& from) {
  const auto result = parse_options(from, "m.toml");
  INFO((result ? "" : result.error()));
  REQUIRE(result.has_value());
  return result->options;
}

std::optional<RecordRule> record(const std::string& value) {
  return options_from(text("", "record = " + value)).pipelines.at(0).record;
}

// The error of this key of [recording], which is on line 3.
std::string recording_error(const std::string& key) { return error_of(text(key, "")); }

}  // namespace

TEST_CASE("nothing is recorded by default") {
  CHECK(options_from("").pipelines.at(0).record == std::nullopt);
  CHECK(options_from("").recording == RecordingOptions{});
  CHECK(record("false") == std::nullopt);
}

TEST_CASE("record is true, or a share of the streams, with or without answers") {
  CHECK(record("true") == RecordRule{.share = 1, .answers = false});
  CHECK(record("{}") == RecordRule{.share = 1, .answers = false});
  CHECK(record("{ share = 0.05, answers = true }") == RecordRule{.share = 0.05, .answers = true});
}

TEST_CASE("a pipeline that records needs a directory") {
  CHECK(error_of("[[pipeline]]\nname = \"a\"\nrecord = true") ==
        "m.toml:3: key 'pipeline.record' = true: needs [recording] directory, where recordings are "
        "written");
  CHECK(error_of("[[pipeline]]\nrecord = false") == "no error");
}

TEST_CASE("invalid values of record are named with the allowed ones") {
  const std::string allowed =
      ": must be true, false, or a table, like { share = 0.05, answers = true }";
  for (const std::string value : {"1", "\"yes\"", "[true]"})
    CHECK(error_of(text("", "record = " + value)) ==
          "m.toml:5: key 'pipeline.record' = " + value + allowed);
  for (const std::string share : {"0", "-0.5", "1.5", "nan"})
    CHECK_THAT(error_of(text("", "record = { share = " + share + " }")),
               Contains("key 'pipeline.record.share' = ") &&
                   EndsWith(": must be a number above 0, at most 1"));
  CHECK_THAT(error_of(text("", "record = { answer = true }")),
             EndsWith("key 'pipeline.record.answer' = true: unknown; did you mean 'answers'?"));
}

TEST_CASE("segment is the former name of file_size, and only one of them is allowed") {
  CHECK(options_from("[recording]\ndirectory = \"r\"\nsegment = \"2MiB\"").recording.file_size ==
        2 << 20);
  CHECK_THAT(recording_error("segment = \"2MiB\"\nfile_size = \"2MiB\""),
             Contains("key 'recording.segment'") && EndsWith("file_size: leave it out"));
}

TEST_CASE("values of [recording] have ranges") {
  CHECK_THAT(recording_error("commit = \"5ms\""),
             Contains("m.toml:3: key 'recording.commit'") && EndsWith("from 10ms to 10s"));
  CHECK_THAT(recording_error("file_size = \"65GiB\""), EndsWith("from 1MiB to 64GiB"));
  CHECK_THAT(recording_error("queue = \"1KiB\""), EndsWith("from 1MiB to 1TiB"));
  CHECK_THAT(recording_error("keep = 5"), EndsWith("from 1MiB to 1024TiB"));
  CHECK_THAT(recording_error("keep_for = \"0s\""), EndsWith("from 1s to 87600h"));
  CHECK_THAT(recording_error("min_free = \"1\""), EndsWith("from 0B to 1024TiB"));
  CHECK(error_of("[recording]\ndirectory = \"\"") ==
        "m.toml:2: key 'recording.directory' = \"\": must be a path of 1 to 4000 bytes");
  CHECK_THAT(recording_error("keep = \"100MiB\""),
             EndsWith("must be at least file_size, which is 256MiB"));
}

TEST_CASE("if a pipeline records, the queue has some pages for each io thread") {
  const std::string threads = "[listen]\nthreads = 64\n";
  CHECK(error_of(threads + text("queue = \"4MiB\"", "record = true")) ==
        "m.toml:5: key 'recording.queue' = \"4MiB\": must be at least 16MiB, as listen.threads is "
        "64");
  CHECK(error_of(threads + text("queue = \"4MiB\"", "")) == "no error");
  CHECK(error_of(threads + text("queue = \"16MiB\"", "record = true")) == "no error");
}
