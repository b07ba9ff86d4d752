// SPDX-License-Identifier: Apache-2.0
#include "recording/format/stream_meta.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace millrace;
using namespace millrace::recording;
using Metadata = std::map<std::string, std::string>;

namespace {

const StreamMeta meta{
    .number = 17,
    .name = "call-4711",
    .pipeline = "asr",
    .rule = R"({"chunk":1600})",
    .frames = {.element = Element::f32, .values = 80, .rate = 12.5, .features = true},
    .batches = RecordedBatches{.dtype = Element::f32, .slots = 64, .rows = 16, .widths = {8, 16}},
    .options = R"({"user":"ä"})",
    .client = R"({"format":"f16le"})",
    .opened_wall = 1'760'000'000'000'000'000,
    .opened_steady = -5};

const Metadata metadata{{"number", "17"},
                        {"name", "call-4711"},
                        {"pipeline", "asr"},
                        {"rule", R"({"chunk":1600})"},
                        {"frames", "f32 80 12.5 features"},
                        {"batches", "f32 64 16 8,16"},
                        {"options", R"({"user":"ä"})"},
                        {"client", R"({"format":"f16le"})"},
                        {"opened", "1760000000000000000"},
                        {"steady", "-5"}};

Result<StreamMeta, std::string> read(const Metadata& from) {
  return meta_from(mcap::TextMap(from.begin(), from.end()));
}

// The key that the error names, or "" if the metadata is valid.
std::string wrong_with(const std::string& key, const std::string& value) {
  Metadata changed = metadata;
  changed[key] = value;
  const auto changed_meta = read(changed);
  return changed_meta ? "" : changed_meta.error();
}

}  // namespace

TEST_CASE("the metadata of a channel has all that is known of the stream") {
  CHECK(to_metadata(meta) == metadata);
  CHECK(*read(metadata) == meta);
}

TEST_CASE("empty options and an empty client format take no space") {
  StreamMeta audio = meta;
  audio.frames = {};
  audio.options = audio.client = "";
  const Metadata written = to_metadata(audio);
  CHECK(written.at("frames") == "s16 1 16000");
  CHECK(written.count("options") + written.count("client") == 0);
  CHECK(*read(written) == audio);
}

TEST_CASE("buckets of rows and a pipeline without state are written behind the batches") {
  StreamMeta changed = meta;
  changed.batches->row_buckets = {4, 16};
  changed.batches->stateful = false;
  const Metadata written = to_metadata(changed);
  CHECK(written.at("batches") == "f32 64 16 8,16 rows=4,16 stateless");
  CHECK(*read(written) == changed);
  CHECK(wrong_with("batches", "f32 64 16 8,16 of=later rows=4,16") == "");
}

TEST_CASE("a stream of an earlier version has no batches") {
  Metadata earlier = metadata;
  earlier.erase("batches");
  CHECK(read(earlier)->batches == std::nullopt);
}

TEST_CASE("a stream that may survive its connection has its key and its epoch") {
  StreamMeta changed = meta;
  changed.resumable = ResumableKey{.epoch = 4'294'967'295};
  for (std::size_t i = 0; i < 16; ++i)
    changed.resumable->stream.bytes[i] = static_cast<std::uint8_t>(15 * i + 15);
  Metadata written = to_metadata(changed);
  CHECK(written.at("key") == "0f1e2d3c4b5a69788796a5b4c3d2e1f0");
  CHECK(written.at("epoch") == "4294967295");
  CHECK(*read(written) == changed);
  written.erase("epoch");
  CHECK(read(written).error() == "epoch");
  written["epoch"] = "4294967296";
  CHECK(read(written).error() == "epoch");
  for (const char* key : {"", "0f", "0F1E2D3C4B5A69788796A5B4C3D2E1F0"})
    CHECK(wrong_with("key", key) == "key");
}

TEST_CASE("every rate is read as it was written") {
  StreamMeta audio = meta;
  for (const double rate : {1e-300, 1.0 / 3, 44'100.0, 1e300}) {
    audio.frames.rate = rate;
    CHECK(read(to_metadata(audio))->frames.rate == rate);
  }
}

TEST_CASE("the error is the key that is absent") {
  for (const char* key : {"number", "name", "pipeline", "rule", "frames", "opened", "steady"}) {
    Metadata changed = metadata;
    changed.erase(key);
    REQUIRE_FALSE(read(changed).has_value());
    CHECK(read(changed).error() == key);
  }
}

TEST_CASE("the error is the key whose value is not valid") {
  for (const char* number : {"", "0", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616"})
    CHECK(wrong_with("number", number) == "number");
  for (const char* text : {"", "a\nb", "\xff", "\x1b[1m"}) {
    CHECK(wrong_with("name", text) == "name");
    CHECK(wrong_with("pipeline", text) == "pipeline");
  }
  CHECK(wrong_with("name", std::string(257, 'x')) == "name");
  for (const char* text : {"{", "[]", "1"}) {
    CHECK(wrong_with("rule", text) == "rule");
    CHECK(wrong_with("options", text) == "options");
    CHECK(wrong_with("client", text) == "client");
  }
  CHECK(wrong_with("rule", "") == "rule");
  for (const char* text :
       {"", "s16", "s16 1", "s17 1 16000", "s16 0 16000", "s16 65536 16000", "s16 1 0", "s16 1 -1",
        "s16 1 nan", "s16 1 inf", "s16 1 16000 audio", "s16  1 16000"})
    CHECK(wrong_with("frames", text) == "frames");
  for (const char* text :
       {"", "f32", "f32 64 16", "f64 64 16 8", "f32 0 16 8", "f32 64 0 8", "f32 64 16 0",
        "f32 64 16 8,8", "f32 64 16 16,8", "f32 64 16 8,", "f32 64 -1 8",
        "f32 64 16 8 rows=", "f32 64 16 8 rows=4,8", "f32 64 16 8 rows=16,4"})
    CHECK(wrong_with("batches", text) == "batches");
  CHECK(wrong_with("opened", "now") == "opened");
  CHECK(wrong_with("steady", "9223372036854775808") == "steady");
}

TEST_CASE("keys of a later version are ignored") { CHECK(wrong_with("speaker", "4") == ""); }
