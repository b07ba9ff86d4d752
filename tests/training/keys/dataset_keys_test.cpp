// SPDX-License-Identifier: Apache-2.0
#include "training/keys/dataset_keys.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <string>

namespace millrace::training {
namespace {

namespace json = boost::json;

Result<DatasetKeys, PlanError> read(const std::string& text) {
  return read_dataset_keys(json::parse(text).as_object());
}

DatasetKeys keys(const std::string& text) {
  const auto read_keys = read(text);
  INFO((read_keys ? "" : read_keys.error().message));
  REQUIRE(read_keys.has_value());
  return *read_keys;
}

std::string error(const std::string& text) {
  const auto read_keys = read(text);
  REQUIRE_FALSE(read_keys.has_value());
  return read_keys.error().message;
}

TEST_CASE("all keys of a data set are read") {
  const DatasetKeys all = keys(R"({
    "streams": "speech", "chunk": {"size": "100ms"}, "mode": "stateless", "rows": 16, "rate": 16000,
    "channels": 2, "frames": "s16", "dtype": "f32", "seed": 18446744073709551615, "shuffle": false,
    "shuffle_window": 100, "max_padded_frames": 5000, "max_waste": 0.1, "buckets": [10, 20],
    "drop_last": false, "width_buckets": [1600], "rank": 1, "world": 4, "device": "cuda:0",
    "prefetch": 3, "threads": 2, "buffers": 9, "companions": {"vad": "labels"}})");
  CHECK(all.streams == std::vector<StreamsKey>{{"speech", 1}});
  CHECK(all.chunk == R"({"size":"100ms"})");
  CHECK(all.plan.mode == PlanMode::stateless);
  CHECK(all.plan.rows == 16);
  CHECK(all.rate == 16000);
  CHECK(all.channels == 2);
  CHECK(all.frames == Element::s16);
  CHECK(all.dtype == Element::f32);
  CHECK(all.plan.seed == 18446744073709551615u);
  CHECK_FALSE(all.plan.shuffle);
  CHECK(all.plan.shuffle_window == 100);
  CHECK(all.plan.max_padded_frames == 5000);
  CHECK(all.plan.max_waste == 0.1);
  CHECK(all.plan.buckets == std::vector<std::uint32_t>{10, 20});
  CHECK_FALSE(all.plan.drop_last);
  CHECK(all.plan.width_buckets == std::vector<std::uint32_t>{1600});
  CHECK(all.loader.rank == Rank{1, 4});
  CHECK(all.loader.device == "cuda:0");
  CHECK(all.loader.prefetch == 3);
  CHECK(all.loader.threads == 2);
  CHECK(all.loader.most_threads == 0);
  CHECK(all.loader.buffers == 9);
  CHECK(all.companions == std::vector<CompanionSource>{{.name = "vad", .from = "labels"}});
  CHECK(keys(R"({"slots": 32, "dim": 80})").dim == 80);
  CHECK(keys(R"({"order": "laplace:.1000"})").plan.order == "laplace:.1000");
  CHECK(keys(R"({"buckets": 30})").plan.bucket_count == 30);
  CHECK(keys(R"({"convert": true})").convert);
  CHECK(keys(R"({"mapped": true})").mapped);
  CHECK_FALSE(keys(R"({"frames": "auto"})").frames);
  CHECK(keys(R"({"packed_batch_size": 7, "max_pad_size": 3})").plan.max_pad_size == 3);
}

TEST_CASE("without a number of threads, they are added as the loop needs them") {
  for (const char* text : {"{}", R"({"threads": "auto"})"}) {
    const DatasetKeys read_keys = keys(text);
    CHECK(read_keys.loader.threads == 1);
    CHECK(read_keys.loader.most_threads >= 1);
  }
}

TEST_CASE("null counts as a missing key") {
  const DatasetKeys none = keys(R"({"chunk": null, "rows": null, "channels": null})");
  CHECK_FALSE(none.chunk);
  CHECK(none.plan.rows == 0);
  CHECK_FALSE(none.channels);
}

TEST_CASE("streams are a path, or a list with frequencies") {
  CHECK(keys(R"({"streams": ["a", ["b", 0.25], [null, 2]]})").streams ==
        std::vector<StreamsKey>{{"a", 1}, {"b", 0.25}, {"", 2}});
  CHECK(error(R"({"streams": []})") ==
        "streams = [] must be a path, or a list of paths and of pairs [path, frequency]");
  CHECK(error(R"({"streams": [["a", -1]]})") ==
        "streams = -1 must be a frequency from 0 to 1000000");
}

TEST_CASE("a companion has a path or a field, and its entries") {
  const auto companions = keys(R"({"companions": {
    "clean": "clean", "words": {"field": "w", "frames_per_entry": 160},
    "codes": {"path": "c", "entries_per_frame": 2, "dtype": "u8"}, "own": null}})")
                              .companions;
  CHECK(companions ==
        std::vector<CompanionSource>{
            {.name = "clean", .from = "clean"},
            {.name = "words", .from = "w", .frames_per_entry = 160},
            {.name = "codes", .from = "c", .entries_per_frame = 2, .element = CompanionElement::u8},
            {.name = "own", .from = ""}});
  CHECK(error(R"({"companions": {"a": {"path": "x", "field": "y"}}})") ==
        "companions.a.field cannot be set beside path: they are two sources");
  CHECK(error(R"({"companions": {"a": {"frames_per_entry": 2, "entries_per_frame": 2}}})") ==
        "companions.a.frames_per_entry cannot be set beside entries_per_frame");
}

TEST_CASE("an unknown key is an error that names the nearest one, and all") {
  CHECK(error(R"({"slot": 3})")
            .find("slot is an unknown key; did you mean slots? The keys are streams, chunk, mode, "
                  "slots,") == 0);
  CHECK(error(R"({"zzzzzz": 3})").find("zzzzzz is an unknown key; the keys are streams, chunk,") ==
        0);
  CHECK(
      error(R"({"companions": {"a": {"file": 1}}})").find("companions.a.file is an unknown key") ==
      0);
}

TEST_CASE("wrong values are errors with the allowed values") {
  CHECK(error(R"({"slots": 0})") == "slots = 0 must be a whole number from 1 to 1048576");
  CHECK(error(R"({"slots": "x"})") == "slots = \"x\" must be a whole number from 1 to 1048576");
  CHECK(error(R"({"seed": -1})") == "seed = -1 must be a whole number of at least 0");
  CHECK(error(R"({"mode": "fast"})") ==
        "mode = \"fast\" must be stateful, stateless, returnn-classic or returnn-torch");
  CHECK(error(R"({"shuffle": 1})") == "shuffle = 1 must be true or false");
  CHECK(error(R"({"frames": "s8"})") == "frames = \"s8\" must be auto, s16, f16 or f32");
  CHECK(error(R"({"device": "gpu"})") ==
        "device = \"gpu\" must be host, or cuda: and a number, like cuda:0");
  CHECK(error(R"({"buckets": [3, 3]})") ==
        "buckets = [3,3] must be a list of ascending numbers of at least 1");
  CHECK(
      error(R"({"buckets": 1})") ==
      "buckets = 1 must be a number from 2 to 1024, or a list of ascending numbers of at least 1");
  CHECK(error(R"({"order": 3})") == "order = 3 must be a text");
  CHECK(error(R"({"chunk": 100})") == "chunk = 100 must be an object, like {\"size\": \"100ms\"}");
}

TEST_CASE("keys that contradict each other are errors") {
  CHECK(error(R"({"rank": 4, "world": 4})") == "rank = 4 must be less than world, which is 4");
  CHECK(error(R"({"dim": 80, "channels": 1})") ==
        "dim = 80 cannot be set beside channels: frames are feature vectors or audio");
  CHECK(error(R"({"dim": 80, "convert": true})") ==
        "convert = true cannot be set beside dim: only audio is converted");
  CHECK(error(R"({"companions": {"tokens": {"per": "stream"}}})") ==
        "companions.tokens.per is for Dataset: trainers make targets of free length");
  CHECK(error(R"({"buffers": 2, "prefetch": 2})") ==
        "buffers = 2 must be more than prefetch, which is 2");
  CHECK(error(R"({"threads": "many"})") == "threads = \"many\" must be \"auto\" or a whole number");
  CHECK(error(R"({"buffers": 1})") == "buffers = 1 must be more than prefetch, which is 1");
  CHECK(error(R"({"frames": "f32", "dtype": "f16"})") ==
        "dtype = \"f16\" must be f32, like the frames: only s16 frames are converted");
}

TEST_CASE("a split has names and fractions, and a part is one of its names") {
  const auto selection = selection_of(
      keys(R"({"split": {"valid": 0.05, "test": 0.1}, "part": "valid", "max_stream": "60s"})"),
      {.rate = 8000});
  REQUIRE(selection.has_value());
  CHECK(selection->split == std::vector<SplitPart>{{"test", 0.1}, {"valid", 0.05}});
  CHECK(selection->part == "valid");
  CHECK(selection->longest == 480'000);
  CHECK(selection_of(keys(R"({"split": {"valid": 0.05}})"), {})->part == "train");
  CHECK(selection_of(keys(R"({"max_stream": 500})"), {})->longest == 500);
  CHECK(error(R"({"split": {}})") ==
        "split = {} must be an object of names and fractions, like {\"valid\": 0.05}");
  CHECK(error(R"({"split": {"valid": 1}})") ==
        "split.valid = 1 must be a fraction of the streams, above 0 and below 1");
  CHECK(error(R"({"split": {"train": 0.5}})").find("names other than train") != std::string::npos);
  CHECK(error(R"({"split": {"a": 0.5, "b": 0.5}})").find("must leave streams for train") !=
        std::string::npos);
  CHECK(error(R"({"part": "valid"})") == "part = \"valid\" needs split, like {\"valid\": 0.05}");
  CHECK(error(R"({"part": "dev", "split": {"valid": 0.1}})") ==
        "part = \"dev\" must be train or valid");
  CHECK(error(R"({"max_stream": 0})") == "max_stream = 0 must be frames, or a time, like \"60s\"");
  CHECK(error(R"({"max_stream": "60"})").find("without quotes") != std::string::npos);
  const auto odd = selection_of(keys(R"({"max_stream": "1us"})"), {});
  REQUIRE_FALSE(odd.has_value());
  CHECK(odd.error().message.find("max_stream = \"1us\" must be whole frames") == 0);
  CHECK_FALSE(selection_of(keys(R"({"max_stream": "0s"})"), {}).has_value());
}

TEST_CASE("the chunk rule is read at the rate of the streams") {
  const FrameType slow{.rate = 8000};
  const auto options = plan_options(keys(R"({"chunk": {"size": "100ms", "left": 64}})"), slow);
  REQUIRE(options.has_value());
  CHECK(options->chunk->spec.size == 800);
  CHECK(options->chunk->spec.left == 64);
  // The JSON that a worker's Welcome has.
  const auto same = plan_options(keys(R"({"chunk": "{\"size\": 800, \"left\": 64}"})"), slow);
  CHECK(same->chunk == options->chunk);
  const auto wrong = plan_options(keys(R"({"chunk": {"sizze": 3}})"), slow);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().key == "chunk");
  CHECK_FALSE(plan_options(keys("{}"), slow)->chunk);
}

TEST_CASE("frequencies are options only if one is not 1") {
  CHECK(plan_options(keys(R"({"streams": ["a", "b"]})"), {})->frequencies.empty());
  CHECK(plan_options(keys(R"({"streams": ["a", ["b", 0.5]]})"), {})->frequencies ==
        std::vector<double>{1, 0.5});
}

TEST_CASE("the type of the tensor is that of the frames by default") {
  CHECK(loader_settings(keys("{}"), {}, {})->dtype == Element::s16);
  CHECK(loader_settings(keys(R"({"dtype": "f32"})"), {}, {})->dtype == Element::f32);
  CHECK_FALSE(
      loader_settings(keys(R"({"dtype": "s16"})"), {.element = Element::f32}, {}).has_value());
}

}  // namespace
}  // namespace millrace::training
