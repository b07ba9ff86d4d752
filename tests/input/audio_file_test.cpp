// SPDX-License-Identifier: Apache-2.0
#include "input/audio_file.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/half.h"
#include "tests/support/audio_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

constexpr int flac16 = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
constexpr int float_wav = SF_FORMAT_WAV | SF_FORMAT_FLOAT;

AudioFile opened(const std::string& path) {
  auto file = AudioFile::open(path);
  if (!file) FAIL(file.error());
  return std::move(*file);
}

template <class Value>
std::vector<Value> frames_of(AudioFile& file, Element element, std::size_t most) {
  std::vector<Value> values(most);
  const auto got = file.read(element, std::as_writable_bytes(std::span(values)));
  if (!got) FAIL(got.error());
  values.resize(*got);
  return values;
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the frames of an audio file can be s16, f16 and f32") {
  const TemporaryDirectory folder;
  const int format = GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, flac16);
  write_audio(folder / "a", std::vector<std::int16_t>{0, 1, -32768, 16384}, {.format = format});
  AudioFile s16 = opened(folder / "a"), f16 = opened(folder / "a"), f32 = opened(folder / "a");
  CHECK(s16.frames() == 4u);
  CHECK(s16.pcm16());
  CHECK(frames_of<std::int16_t>(s16, Element::s16, 9) ==
        std::vector<std::int16_t>{0, 1, -32768, 16384});
  CHECK(frames_of<std::uint16_t>(f16, Element::f16, 9) ==
        std::vector<std::uint16_t>{0, float_to_half(0x1p-15f), 0xbc00, 0x3800});
  CHECK(frames_of<float>(f32, Element::f32, 9) == std::vector<float>{0, 0x1p-15f, -1, 0.5f});
}

TEST_CASE("values beyond the range of 16 bits are clamped") {
  const TemporaryDirectory folder;
  write_audio(folder / "a", std::vector<float>{2, -2, 0.25f}, {.format = float_wav});
  AudioFile s16 = opened(folder / "a"), f32 = opened(folder / "a");
  CHECK(!s16.pcm16());
  CHECK(frames_of<std::int16_t>(s16, Element::s16, 9) ==
        std::vector<std::int16_t>{32767, -32768, 8192});
  CHECK(frames_of<float>(f32, Element::f32, 9) == std::vector<float>{2, -2, 0.25f});
}

TEST_CASE("an audio file with a value that is not finite is an error") {
  const TemporaryDirectory folder;
  std::vector<float> values(40'000, 0.5f);
  values[39'000] = std::numeric_limits<float>::quiet_NaN();
  write_audio(folder / "a", values, {.format = float_wav});
  AudioFile file = opened(folder / "a");
  CHECK(frames_of<float>(file, Element::f32, 20'000).size() == 20'000);
  const auto got = file.read(20'000);
  REQUIRE(!got);
  CHECK(got.error() == "has values that are not finite");
}

TEST_CASE("frames after a skip are those of a file that is read from its beginning") {
  const TemporaryDirectory folder;
  const int format =
      GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, float_wav,
               flac16, SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III);
  write_audio(folder / "a", noise(2 * 40'000, 1), {.format = format, .channels = 2});
  AudioFile all = opened(folder / "a");
  const auto expected = frames_of<float>(all, Element::f32, 2 * 60'000);
  for (const std::size_t skipped : {1u, 4096u, 33'333u}) {
    AudioFile file = opened(folder / "a");
    CHECK(*file.skip(skipped) == skipped);
    std::vector<float> rest(2 * 1000);
    REQUIRE(*file.read(Element::f32, std::as_writable_bytes(std::span(rest))) == 1000);
    CHECK(std::memcmp(rest.data(), expected.data() + 2 * skipped, 2 * 1000 * sizeof(float)) == 0);
  }
}

TEST_CASE("a skip ends at the end of the file") {
  const TemporaryDirectory folder;
  const int format = GENERATE(SF_FORMAT_OGG | SF_FORMAT_VORBIS, flac16);
  write_audio(folder / "a", noise(5000, 1), {.format = format});
  AudioFile file = opened(folder / "a");
  CHECK(*file.skip(4000) == 4000);
  CHECK(*file.skip(4000) == 1000);
  CHECK(file.read(10)->empty());
}

TEST_CASE("a damaged audio file is an error at the damage") {
  const TemporaryDirectory folder;
  write_audio(folder / "a", noise(40'000, 1), {.format = flac16});
  std::string bytes = content(folder / "a");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  std::ofstream(folder / "a", std::ios::binary) << bytes;
  AudioFile file = opened(folder / "a");
  CHECK(file.read(10'000)->size() == 10'000);
  const auto got = file.read(30'000);
  REQUIRE(!got);
  CHECK(got.error().starts_with("is damaged: "));
}

TEST_CASE("a file that is no audio is an error") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "a.wav") << "text";
  CHECK(AudioFile::open(folder / "a.wav").error().starts_with("cannot be read as audio: "));
  CHECK(AudioFile::open(folder / "b.wav").error() ==
        "cannot be read as audio: No such file or directory");
}

TEST_CASE("an Ogg file with recordings one behind the other is an error") {
  const TemporaryDirectory folder;
  write_audio(folder / "a", noise(5000, 1), {.format = SF_FORMAT_OGG | SF_FORMAT_VORBIS});
  const std::string one = content(folder / "a");
  std::ofstream(folder / "b", std::ios::binary) << one << one;
  CHECK(opened(folder / "a").frames() == 5000u);
  CHECK(AudioFile::open(folder / "b").error().starts_with("has several recordings"));
}

TEST_CASE("audio files are known by their name") {
  CHECK(is_audio_name("a/b.WAV"));
  CHECK(is_audio_name("a.b.flac"));
  CHECK(!is_audio_name("wav"));
  CHECK(!is_audio_name("a.npy"));
}

}  // namespace millrace
