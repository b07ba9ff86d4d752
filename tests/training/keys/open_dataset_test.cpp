// SPDX-License-Identifier: Apache-2.0
#include "training/keys/open_dataset.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/support/audio_files.h"
#include "tests/support/temporary_directory.h"
#include "training/plans/make_plan.h"

namespace millrace::training {
namespace {

namespace json = boost::json;

// Folders of audio files.
class Folders {
 public:
  std::string add(const std::string& name, std::initializer_list<std::size_t> lengths,
                  int rate = 16000, int format = SF_FORMAT_WAV | SF_FORMAT_PCM_16) {
    const std::string folder = directory_ / name;
    std::filesystem::create_directories(folder);
    std::uint32_t number = 0;
    for (const std::size_t length : lengths) {
      ++number;
      write_audio(folder + "/" + std::to_string(number) + ".wav", noise(length, number),
                  {.format = format, .rate = rate});
    }
    return folder;
  }

 private:
  TemporaryDirectory directory_;
};

Result<OpenedDataset, PlanError> open(const json::object& object) {
  const auto keys = read_dataset_keys(object);
  REQUIRE(keys.has_value());
  return open_dataset(*keys);
}

std::string opening_error(const json::object& object) {
  const auto opened = open(object);
  REQUIRE_FALSE(opened.has_value());
  return opened.error().message;
}

TEST_CASE("a data set opens with a catalog, the options of a plan and the loader's settings") {
  Folders folders;
  const json::object keys{{"streams", folders.add("calls", {3200, 800})},
                          {"chunk", {{"size", "100ms"}}},
                          {"slots", 2},
                          {"dtype", "f32"},
                          {"world", 2}};
  const auto opened = open(keys);
  REQUIRE(opened.has_value());
  CHECK(opened->catalog->size() == 2);
  CHECK(opened->catalog->frames(0) == 3200);
  CHECK(opened->options.chunk->spec.size == 1600);
  CHECK(opened->settings.dtype == Element::f32);
  CHECK(opened->settings.rank.world == 2);
  CHECK(make_plan(*opened->catalog, opened->options, opened->settings.rank).has_value());
}

TEST_CASE("several catalogs are joined, with their frequencies") {
  Folders folders;
  const json::object keys{{"streams",
                           {folders.add("calls", {1600, 1600}),
                            {folders.add("noise", {1600, 1600, 1600, 1600}), 0.25}}}};
  const auto opened = open(keys);
  REQUIRE(opened.has_value());
  CHECK(opened->catalog->parts() == std::vector<std::uint64_t>{0, 2, 6});
  CHECK(opened->options.frequencies == std::vector<double>{1, 0.25});
}

TEST_CASE("streams are selected and divided through all catalogs") {
  Folders folders;
  const std::string calls = folders.add("calls", {1600, 4000}), noise = folders.add("noise", {100});
  const auto opened = open({{"streams", {calls, noise}}, {"max_stream", "0.1s"}});
  REQUIRE(opened.has_value());
  CHECK(opened->catalog->parts() == std::vector<std::uint64_t>{0, 4, 5});
  CHECK(opened->catalog->name(3) == "2@0.2s");
  CHECK(opening_error({{"streams", calls}, {"split", {{"valid", 1e-9}}}, {"part", "valid"}}) ==
        "part = \"valid\" has none of the 2 streams");
  CHECK(opening_error({{"streams", calls}, {"max_stream", "1us"}}).find("max_stream = \"1us\"") ==
        0);
}

TEST_CASE("audio files in a list are one catalog") {
  Folders folders;
  const std::string calls = folders.add("calls", {100, 200});
  const auto opened = open({{"streams", {calls + "/2.wav", calls + "/1.wav"}}});
  REQUIRE(opened.has_value());
  CHECK(opened->catalog->parts() == std::vector<std::uint64_t>{0, 2});
  CHECK(opened->catalog->name(0) == "2");
  CHECK(open({{"streams", {{calls + "/2.wav", 2}, calls + "/1.wav"}}})->catalog->parts().size() ==
        3);
}

TEST_CASE("if one file of a data set has more than 16 bits, its frames are f32, or as the dtype") {
  Folders folders;
  const std::string plain = folders.add("plain", {100, 100});
  const std::string deep = folders.add("deep", {100}, 16000, SF_FORMAT_WAV | SF_FORMAT_PCM_24);
  const auto element = [&](json::object keys) {
    const auto opened = open(keys);
    REQUIRE(opened.has_value());
    return opened->catalog->frame_type().element;
  };
  CHECK(element({{"streams", plain}}) == Element::s16);
  CHECK(element({{"streams", plain}, {"dtype", "f32"}}) == Element::s16);
  CHECK(element({{"streams", {plain, deep}}, {"frames", "auto"}}) == Element::f32);
  CHECK(element({{"streams", {deep, plain}}}) == Element::f32);
  CHECK(element({{"streams", {deep, plain}}, {"dtype", "f16"}}) == Element::f16);
  CHECK(element({{"streams", {deep, plain}}, {"dtype", "s16"}}) == Element::s16);
  CHECK(element({{"streams", {deep, plain}}, {"frames", "s16"}}) == Element::s16);
}

TEST_CASE("files of other rates are converted if the keys say so") {
  Folders folders;
  const json::object keys{
      {"streams", {folders.add("calls", {1600}), folders.add("slow", {800}, 8000)}},
      {"rate", 16000},
      {"convert", true}};
  const auto opened = open(keys);
  REQUIRE(opened.has_value());
  CHECK(opened->catalog->frames(1) == 1600);
}

TEST_CASE("sources that cannot be opened are errors by name") {
  Folders folders;
  const std::string calls = folders.add("calls", {1600});
  CHECK(opening_error({}).find("streams is missing") == 0);
  CHECK(opening_error({{"streams", {nullptr}}}).find("streams = \"\" must be the path") == 0);
  CHECK(opening_error({{"streams", "tcp://host:1"}})
            .find("streams = \"tcp://host:1\" must be the path") == 0);
  CHECK(opening_error({{"streams", calls + "/none"}}).find("no such file") != std::string::npos);
  CHECK(opening_error({{"streams", calls}, {"companions", {{"own", nullptr}}}}) ==
        "companions.own needs a path or a field");
  CHECK(opening_error({{"streams", calls}, {"chunk", {{"sizze", 1}}}}).find("chunk: ") == 0);
  const std::string slow = folders.add("slow", {800}, 8000);
  CHECK_FALSE(opening_error({{"streams", {calls, slow}}}).empty());
}

}  // namespace
}  // namespace millrace::training
