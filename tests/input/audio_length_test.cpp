// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "input/audio_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

constexpr int wav = SF_FORMAT_WAV | SF_FORMAT_PCM_16;

AudioFile opened_file(const std::string& path) {
  auto file = AudioFile::open(path);
  if (!file) FAIL(file.error());
  return std::move(*file);
}

std::uint64_t decoded(const std::string& path) {
  AudioFile file = opened_file(path);
  std::uint64_t frames = 0;
  for (;;) {
    const auto part = file.read(1000);
    if (!part) FAIL(part.error());
    if (part->empty()) return frames;
    frames += part->size();
  }
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Sets the little-endian size of the samples.
void set_size(const std::string& path, std::uint32_t size) {
  std::string bytes = bytes_of(path);
  const std::size_t at = bytes.find("data") + 4;
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(size >> (8 * i));
  write(path, bytes);
}

// Removes the first frame, which has the length.
void remove_xing(const std::string& path) {
  const std::string bytes = bytes_of(path);
  write(path, bytes.substr(bytes.find(bytes.substr(0, 2), 100)));
}

// Adds one to the number of frames in the first frame.
void count_xing(const std::string& path) {
  std::string bytes = bytes_of(path);
  const std::size_t at = std::min(bytes.find("Xing"), bytes.find("Info")) + 11;
  ++bytes[at];
  write(path, bytes);
}

// The first half is silent, so that the first frames are short.
void write_mp3(const std::string& path) {
  std::vector<std::int16_t> samples(32'000);
  const auto loud = noise(32'000, 1);
  samples.insert(samples.end(), loud.begin(), loud.end());
  SF_INFO format{};
  format.samplerate = 16000;
  format.channels = 1;
  format.format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &format);
  REQUIRE(file != nullptr);
  int mode = SF_BITRATE_MODE_VARIABLE;
  sf_command(file, SFC_SET_BITRATE_MODE, &mode, sizeof mode);
  CHECK(sf_writef_short(file, samples.data(), 64'000) == 64'000);
  sf_close(file);
}

}  // namespace

TEST_CASE("a WAV file whose header has no length, or less than the file, is read to its end") {
  const TemporaryDirectory folder;
  const std::uint32_t size = GENERATE(0u, 8'000u, 0xffff'ffffu);
  const int format =
      GENERATE(+wav, SF_FORMAT_WAV + SF_FORMAT_PCM_24, SF_FORMAT_WAV + SF_FORMAT_FLOAT);
  write_audio(folder / "a.wav", noise(16'000, 1), {.format = format});
  set_size(folder / "a.wav", size);
  CHECK(opened_file(folder / "a.wav").frames() == 16'000u);
  CHECK(decoded(folder / "a.wav") == 16'000);
}

TEST_CASE("quiet samples of 8 bits are no text") {
  const TemporaryDirectory folder;
  const std::uint32_t size = GENERATE(0u, 800u);
  std::vector<float> samples(16'000);
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] = -static_cast<float>(i % 3 + 2) / 128;  // as z, { and |
  write_audio(folder / "a.wav", samples, {.format = SF_FORMAT_WAV | SF_FORMAT_PCM_U8});
  set_size(folder / "a.wav", size);
  CHECK(decoded(folder / "a.wav") == 16'000);
}

TEST_CASE("a BW64 file is read as RF64") {
  const TemporaryDirectory folder;
  const int values = GENERATE(+SF_FORMAT_PCM_16, +SF_FORMAT_PCM_24);
  write_audio(folder / "a.wav", noise(1'000, 1), {.format = SF_FORMAT_RF64 | values});
  std::string bytes = bytes_of(folder / "a.wav");
  bytes.replace(0, 4, "BW64");
  write(folder / "a.wav", bytes);
  CHECK(opened_file(folder / "a.wav").frames() == 1'000u);
  CHECK(decoded(folder / "a.wav") == 1'000);
  CHECK(opened_file(folder / "a.wav").is_deep() == (values == SF_FORMAT_PCM_24));
}

TEST_CASE("chunks, tags and zeros behind the samples are no audio") {
  const TemporaryDirectory folder;
  const std::string behind =
      GENERATE(std::string("LIST\x0c\0\0\0INFOISFT\0\0\0\0", 20), std::string("x1!~\2\0\0\0ab", 10),
               "TAG" + std::string(125, 'x'), std::string("\x11\x22"));
  const std::uint32_t frames = GENERATE(0u, 1'000u);
  write_audio(folder / "a.wav", noise(frames, 1));
  write(folder / "a.wav", bytes_of(folder / "a.wav") + behind);
  CHECK(opened_file(folder / "a.wav").frames() == frames);
  CHECK(decoded(folder / "a.wav") == frames);
}

TEST_CASE("a file may begin with an ID3 tag") {
  const TemporaryDirectory folder;
  const int kind =
      GENERATE(+SF_FORMAT_WAV, +SF_FORMAT_AIFF, +SF_FORMAT_AU, +SF_FORMAT_W64, +SF_FORMAT_RF64);
  write_audio(folder / "a", noise(1'000, 1), {.format = kind | SF_FORMAT_PCM_16});
  const std::string tag("ID3\3\0\0\0\0\0\5title", 15);
  write(folder / "a", tag + bytes_of(folder / "a"));
  CHECK(opened_file(folder / "a").frames() == 1'000u);
  CHECK(decoded(folder / "a") == 1'000);
}

TEST_CASE("a file that was cut has the length that its header promises") {
  const TemporaryDirectory folder;
  const int kind =
      GENERATE(+SF_FORMAT_WAV, +SF_FORMAT_AIFF, +SF_FORMAT_AU, +SF_FORMAT_W64, +SF_FORMAT_RF64);
  const int values = GENERATE(+SF_FORMAT_PCM_16, +SF_FORMAT_PCM_24, +SF_FORMAT_FLOAT);
  write_audio(folder / "a", noise(16'000, 1), {.format = kind | values});
  std::filesystem::resize_file(folder / "a", std::filesystem::file_size(folder / "a") / 2);
  CHECK(opened_file(folder / "a").frames() == 16'000u);
  const std::uint64_t frames = decoded(folder / "a");
  CHECK(frames > 7'000);
  CHECK(frames < 8'000);
}

TEST_CASE("an MP3 file of several bit rates and no length is read to its end") {
  const TemporaryDirectory folder;
  write_mp3(folder / "a.mp3");
  CHECK(opened_file(folder / "a.mp3").frames() == 64'000u);
  remove_xing(folder / "a.mp3");
  CHECK(!opened_file(folder / "a.mp3").frames());
  CHECK(decoded(folder / "a.mp3") >= 64'000);
}

TEST_CASE("an MP3 file without a length that ends within a frame is read up to this frame") {
  const TemporaryDirectory folder;
  write_mp3(folder / "a.mp3");
  remove_xing(folder / "a.mp3");
  const std::uint64_t whole = decoded(folder / "a.mp3");
  const int missing = GENERATE(1, 20, 100);
  std::filesystem::resize_file(folder / "a.mp3", std::filesystem::file_size(folder / "a.mp3") -
                                                     static_cast<std::uintmax_t>(missing));
  CHECK(decoded(folder / "a.mp3") >= whole - 1'152);
}

TEST_CASE("an MP3 file whose first frame counts itself has the length that is decoded") {
  const TemporaryDirectory folder;
  write_mp3(folder / "a.mp3");
  count_xing(folder / "a.mp3");
  CHECK(opened_file(folder / "a.mp3").frames() == 64'000u);
  CHECK(decoded(folder / "a.mp3") == 64'000);
}

TEST_CASE("MP3 files one after the other are read to the end of the last one") {
  const TemporaryDirectory folder;
  write_mp3(folder / "a.mp3");
  write(folder / "b.mp3", bytes_of(folder / "a.mp3") + bytes_of(folder / "a.mp3"));
  CHECK(decoded(folder / "b.mp3") >= 126'000);
  CHECK(opened_file(folder / "b.mp3").frames() == decoded(folder / "b.mp3"));
}

}  // namespace millrace
