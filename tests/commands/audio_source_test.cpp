// SPDX-License-Identifier: Apache-2.0
#include "commands/input/audio_source.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>

#include "commands/input/pcm_source.h"
#include "commands/input/wav_header.h"
#include "tests/support/bytes.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

using std::string_literals::operator""s;

using test::number;

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string format_chunk(int kind, int bits) {
  const auto block = static_cast<std::uint64_t>(bits / 8);
  return "fmt " + number(16, 4) + number(static_cast<std::uint64_t>(kind), 2) + number(1, 2) +
         number(16'000, 4) + number(16'000 * block, 4) + number(block, 2) + number(8 * block, 2);
}

std::string wav(std::uint64_t size, const std::string& rest, int kind = 1, int bits = 16) {
  return "RIFF" + number(0xffffffff, 4) + "WAVE" + format_chunk(kind, bits) + "data" +
         number(size, 4) + rest;
}

// With a length in the chunk `ds64`, and one in the chunk of the samples.
std::string long_wav(const std::string& name, std::uint64_t length, std::uint64_t size,
                     const std::string& rest) {
  return name + number(0xffffffff, 4) + "WAVE" + "ds64" + number(28, 4) + number(1'000, 8) +
         number(length, 8) + number(500, 8) + number(0, 4) + format_chunk(1, 16) + "data" +
         number(size, 4) + rest;
}

// W64 begins chunks at multiples of 8, and counts their heads.
std::string w64(std::uint64_t size, const std::string& rest) {
  const std::string same = "\xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a"s;
  return "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0"s + number(104 + rest.size(), 8) +
         "wave" + same + "fmt " + same + number(40, 8) + format_chunk(1, 16).substr(8) + "data" +
         same + number(size, 8) + rest;
}

// What a source gives, or its error.
struct Given {
  std::string bytes{}, notice{};
  std::size_t frames = 0;
};

Given given_by(AudioSource& source) {
  Given given;
  for (;;) {
    const auto part = source.read(1'000);
    if (!part) FAIL(part.error());
    REQUIRE(part->has_value());
    if ((*part)->empty()) break;
    given.bytes.append(reinterpret_cast<const char*>((*part)->data()), (*part)->size());
  }
  given.notice = source.length_notice();
  given.frames = given.bytes.size() / source.format().frame_bytes();
  return given;
}

class Pipe {
 public:
  explicit Pipe(const std::string& bytes) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    in = FileDescriptor(ends[0]);
    out = FileDescriptor(ends[1]);
    REQUIRE(::write(out.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

  std::unique_ptr<AudioSource> source() {
    const auto header = read_wav_header(in.get());
    if (!header) FAIL(header.error());
    return std::make_unique<PcmSource>(std::move(in), header->format, header->samples);
  }

  FileDescriptor in, out;
};

Given from_pipe(const std::string& bytes) {
  Pipe pipe(bytes);
  pipe.out = FileDescriptor();
  return given_by(*pipe.source());
}

Given from_file(const std::string& bytes) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "a.wav", std::ios::binary) << bytes;
  auto opened = open_audio(folder / "a.wav", std::nullopt);
  if (!opened) FAIL(opened.error());
  return given_by(**opened);
}

struct Example {
  const char* what;
  std::string bytes;
  std::size_t frames;
};

std::vector<Example> examples() {
  const std::string sound = repeated("\1\2\3\4\5\6\7\x80"s, 1'000);  // 4000 frames
  const std::string quiet = repeated("TWVQP", 1'600), law = repeated("\xf1\xe2", 4'000);
  const std::string zeros(512, '\0'), xml = "<?xml version=\"1.0\"?><notes>" + repeated("x ", 99);
  const std::string list = "LIST" + number(200, 4) + "INFO" + std::string(196, 'x');
  const std::string umlauts =
      "\r\n<notes>Gr\xc3\xbc\xc3\x9f"
      "e " +
      repeated("aus M\xc3\xbcnchen ", 9);
  std::vector<Example> all{
      {"quiet A-law without a length", wav(0, quiet, 6, 8), 8'000},
      {"quiet A-law beyond its length", wav(800, quiet, 6, 8), 8'000},
      {"quiet mu-law with a large number as length", wav(0xffffffff, quiet, 7, 8), 8'000},
      {"a chunk without samples", wav(0, list), 0},
      {"silence without a length", wav(0, std::string(8'000, '\0')), 4'000},
      {"silence, then sound", wav(0, zeros + sound), 4'256},
      {"silence beyond a length, then sound", wav(4'000, sound + zeros + sound), 8'256},
      {"sound, then silence", wav(4'000, sound + zeros), 4'256},
      {"zeros", wav(8'000, sound + zeros), 4'000},
      {"zeros, then a chunk", wav(8'000, sound + zeros + list), 4'000},
      {"zeros, then text", wav(8'000, sound + zeros + umlauts), 4'000},
      {"zeros, then a chunk at an odd offset", wav(8'000, sound + zeros + "\0"s + list), 4'000},
      {"text with umlauts", wav(8'000, sound + umlauts), 4'000},
      {"text that is cut within a character",
       wav(8'000, sound + repeated("\xc3\xbc", 31) + "x" + repeated("\xc3\xbc", 20)), 4'000},
      {"text after a byte order mark", wav(8'000, sound + "\xef\xbb\xbf" + xml), 4'000},
      {"one value again and again", wav(4'000, repeated("AB", 4'000)), 4'000},
      {"few bytes", wav(8'000, sound + std::string(60, '\x81')), 4'000},
  };
  for (const int kind : {6, 7}) {
    all.push_back({"XML after G.711", wav(8'000, law + xml, kind, 8), 8'000});
    all.push_back({"XML after a filled byte", wav(8'001, law + "\xf1\0"s + xml, kind, 8), 8'001});
    all.push_back({"XML at an odd offset", wav(8'001, law + "\xf1" + xml, kind, 8), 8'001});
    all.push_back(
        {"a chunk after a filled byte", wav(8'001, law + "\xf1\xff" + list, kind, 8), 8'001});
  }
  for (const std::string name : {"RF64", "BW64"}) {
    const std::uint64_t none = 0xffffffff;
    all.push_back({"its length", long_wav(name, 8'000, none, sound), 4'000});
    all.push_back({"a chunk behind", long_wav(name, 8'000, none, sound + list), 4'000});
    all.push_back({"no length", long_wav(name, 0, none, sound), 4'000});
    all.push_back({"too large a length", long_wav(name, ~std::uint64_t{0}, none, sound), 4'000});
    all.push_back({"a part", long_wav(name, 1'000, none, sound), 500});
    all.push_back({"a short length below 4 GiB", long_wav(name, 0, 1'000, sound), 4'000});
    all.push_back({"a length of 0 below 4 GiB", long_wav(name, 8'000, 0, sound), 4'000});
    all.push_back({"its length below 4 GiB", long_wav(name, 0, 8'000, sound), 4'000});
    all.push_back({"an ID3 tag",
                   "ID3\3" + number(0, 5) +
                       "\x4"
                       "1234"s +
                       long_wav(name, 0, none, sound),
                   4'000});
  }
  all.push_back({"its length", w64(8'024, sound), 4'000});
  all.push_back({"no length", w64(0, sound), 4'000});
  all.push_back({"an empty length", w64(24, sound), 4'000});
  all.push_back({"too large a length", w64(~std::uint64_t{0}, sound), 4'000});
  all.push_back({"a chunk behind", w64(8'024, sound + list), 4'000});
  return all;
}

}  // namespace

TEST_CASE("a file and a pipe give the same frames, whatever the header says and what follows") {
  for (const Example& example : examples()) {
    CAPTURE(example.what, example.bytes.substr(0, 4));
    const Given piped = from_pipe(example.bytes), read = from_file(example.bytes);
    CHECK(piped.frames == example.frames);
    CHECK(read.frames == example.frames);
    CHECK(piped.notice == read.notice);
    if (piped.bytes.size() == read.bytes.size()) CHECK(piped.bytes == read.bytes);
  }
}

TEST_CASE("silence from a pipe without a length is read while it comes") {
  Pipe pipe(wav(0, std::string(1'000, '\0')));
  const auto source = pipe.source();
  const auto silence = source->read(500);
  REQUIRE(silence.has_value());
  REQUIRE(silence->has_value());
  CHECK((*silence)->size() == 1'000);
}

TEST_CASE("a header without a format, and one that ends, are errors that say so") {
  const auto error = [](const std::string& bytes) {
    Pipe pipe(bytes);
    pipe.out = FileDescriptor();
    return read_wav_header(pipe.in.get()).error();
  };
  const std::string head = "RIFF" + number(99, 4) + "WAVE";
  CHECK(error(head + "data" + number(8, 4) + "12345678") == "has no format before its samples");
  CHECK(error("ID3\3" + number(0, 6) + head + "data" + number(8, 4)) ==
        "has no format before its samples");
  CHECK(error(head + "fmt " + number(16, 4)) == "ends within its WAV header");
  CHECK(error("riff\x2e\x91\xcf\x11" + number(0, 30)) == "ends within its WAV header");
}

}  // namespace millrace
