// SPDX-License-Identifier: Apache-2.0
#include "input/containers/sample_bytes.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "base/file_descriptor.h"
#include "input/containers/container_name.h"
#include "input/containers/header_reader.h"
#include "tests/support/bytes.h"

namespace millrace {
namespace {

using test::number;

// A format chunk of 16-bit PCM at 16 kHz, with more bytes behind.
std::string format(const std::string& more = {}) {
  return "fmt " + number(16 + more.size(), 4) + number(1, 2) + number(1, 2) + number(16000, 4) +
         number(32000, 4) + number(2, 2) + number(16, 2) + more + (more.size() % 2 ? "x" : "");
}

// Reads a header from a pipe. `rest`: the bytes after it.
std::optional<SampleBytes> read_piped(const std::string& bytes, std::string& rest) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  FileDescriptor in(ends[0]), out(ends[1]);
  REQUIRE(::write(out.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  out = FileDescriptor();
  HeaderReader header(in.get());
  const auto found = read_sample_bytes(header);
  rest.resize(bytes.size());
  rest.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, ::read(in.get(), rest.data(), rest.size()))));
  return found;
}

}  // namespace

TEST_CASE("the header of a WAV stream is read from a pipe up to the first sample") {
  const std::string ds64 =
      "ds64" + number(28, 4) + number(99, 8) + number(4, 8) + number(2, 8) + number(0, 4);
  const std::string bytes =
      GENERATE_COPY("RIFF" + number(40, 4) + "WAVE" + format() + "data" + number(4, 4),
                    "RIFF" + number(58, 4) + "WAVE" + "LIST" + number(5, 4) + "12345x" +
                        format("y") + "data" + number(4, 4),
                    "RF64\xff\xff\xff\xffWAVE" + ds64 + format() + "data\xff\xff\xff\xff",
                    "ID3\3" + number(0, 5) + "\2xx" + "RIFF" + number(40, 4) + "WAVE" + format() +
                        "data" + number(4, 4));
  std::string rest;
  const auto found = read_piped(bytes + "abcd", rest);
  REQUIRE(found);
  REQUIRE(found->format);
  CHECK(found->format->rate == 16000);
  CHECK(found->format->bits == 16);
  CHECK(found->begin == bytes.size());
  CHECK(found->declared == 4);
  CHECK(found->is_known());
  CHECK(rest == "abcd");
}

TEST_CASE("a header without a length says so") {
  std::string rest;
  for (const std::uint64_t size : {0ull, 0xffffffffull, 0x7fff0000ull}) {
    const auto found =
        read_piped("RIFF" + number(0, 4) + "WAVE" + format() + "data" + number(size, 4), rest);
    REQUIRE(found);
    CHECK(!found->is_known());
  }
  CHECK(!read_piped("RIFF" + number(0, 4) + "WAVE" + format(), rest));
  CHECK(!read_piped("OggS" + number(0, 40), rest));
}

TEST_CASE("a container is known by its signature") {
  const auto name = [](const std::string& bytes) {
    return container_name(std::as_bytes(std::span(bytes)));
  };
  CHECK(name("RIFF1234WAVEfmt ") == "WAV");
  CHECK(name("RIFX1234WAVE") == "RIFX");
  CHECK(name("RIFF1234xxxx") == "");
  CHECK(name("OggS1234") == "Ogg");
  CHECK(name("fLaC") == "FLAC");
  CHECK(name("ID3\3") == "MP3");
  CHECK(name("\x1a\x45\xdf\xa3") == "WebM");
  CHECK(name(number(24, 4) + "ftypisom") == "MP4");
  CHECK(name("FORM1234AIFF") == "AIFF");
  CHECK(name("\xff\xfb\x90\x64") == "");  // a bare MPEG frame
  CHECK(name("OggX") == "");
  CHECK(name("") == "");
}

}  // namespace millrace
