// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/export/part_files.h"

#include <fcntl.h>
#include <sndfile.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <span>

#include "base/file_descriptor.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recordings {
namespace {

using Kind = Event::Kind;
using Samples = std::vector<short>;

// Writes one stream of s16 frames to files of a folder.
class Written {
 public:
  explicit Written(const AudioFiles& how, FrameType frames = {}) {
    recording::RecordedStream stream;
    stream.meta.number = 17;
    stream.meta.frames = frames;
    parts_.emplace(folder_.get(), stream, how);
  }

  template <class Value>
  void frames(const std::vector<Value>& values) {
    const Bytes bytes = std::as_bytes(std::span(values));
    REQUIRE(parts_->add({.event = {.kind = Kind::frames, .count = values.size()},
                         .frames = bytes,
                         .position = position_}));
    position_ += values.size();
  }
  void open_anew(std::uint64_t position) {
    position_ = position;
    REQUIRE(parts_->add({.event = {.count = position, .rows = 1}, .position = position}));
  }
  void event(Kind kind, std::uint64_t count = 0) {
    REQUIRE(parts_->add({.event = {.kind = kind, .count = count}, .position = position_}));
    if (kind == Kind::gap) position_ += count;
  }
  // The files, as "17.wav 0-5".
  std::string finish() {
    REQUIRE(parts_->finish());
    std::string list;
    for (const auto& file : parts_->files())
      list += (list.empty() ? "" : ", ") + file.name + ' ' + std::to_string(file.begin) + '-' +
              std::to_string(file.end);
    return list;
  }
  Samples samples(const std::string& name) {
    SF_INFO info{};
    SNDFILE* file = sf_open((path_ / name).c_str(), SFM_READ, &info);
    REQUIRE(file != nullptr);
    Samples samples(static_cast<std::size_t>(info.frames * info.channels));
    sf_read_short(file, samples.data(), static_cast<sf_count_t>(samples.size()));
    sf_close(file);
    return samples;
  }
  // Up to 3 of them, from a place on.
  Samples samples(const std::string& name, std::int64_t from) {
    SF_INFO info{};
    SNDFILE* file = sf_open((path_ / name).c_str(), SFM_READ, &info);
    REQUIRE(file != nullptr);
    REQUIRE(sf_seek(file, from, SEEK_SET) == from);
    Samples samples(3);
    samples.resize(static_cast<std::size_t>(sf_read_short(file, samples.data(), 3)));
    sf_close(file);
    return samples;
  }
  struct stat status(const std::string& name) {
    struct stat status {};
    REQUIRE(::stat((path_ / name).c_str(), &status) == 0);
    return status;
  }
  std::string bytes(const std::string& name) {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int folder() const { return folder_.get(); }
  PartFiles& parts() { return *parts_; }

 private:
  TemporaryDirectory path_;
  FileDescriptor folder_{::open(path_.path().c_str(), O_RDONLY | O_DIRECTORY)};
  std::optional<PartFiles> parts_;
  std::uint64_t position_ = 0;
};

void feed(Written& to) {
  to.event(Kind::open);
  to.frames(Samples{1, 2});
  to.event(Kind::flush);
  to.frames(Samples{3});
  to.event(Kind::gap, 2);
  to.frames(Samples{-4});
  to.event(Kind::end);
}

TEST_CASE("one file per stream has silence where frames are missing") {
  Written wav({});
  feed(wav);
  CHECK(wav.finish() == "17.wav 0-6");
  CHECK(wav.samples("17.wav") == Samples{1, 2, 3, 0, 0, -4});

  Written flac({.form = AudioForm::flac});
  feed(flac);
  CHECK(flac.finish() == "17.flac 0-6");
  CHECK(flac.samples("17.flac") == Samples{1, 2, 3, 0, 0, -4});
}

TEST_CASE("the frames before an open anew are no silence") {
  Written written({});
  written.open_anew(100);
  written.frames(Samples{1, 2});
  written.event(Kind::gap, 1);
  written.frames(Samples{3});
  CHECK(written.finish() == "17.wav 100-104");
  CHECK(written.samples("17.wav") == Samples{1, 2, 0, 3});
}

TEST_CASE("missing frames at the begin and at the end are silence too") {
  Written written({});
  written.event(Kind::gap, 1);
  written.frames(Samples{5});
  written.event(Kind::gap, 2);
  CHECK(written.finish() == "17.wav 0-4");
  CHECK(written.samples("17.wav") == Samples{0, 5, 0, 0});
}

TEST_CASE("long silence in a WAV file takes no space on the disk") {
  Written written({});
  written.frames(Samples{1});
  written.event(Kind::gap, 50'000'000);
  written.frames(Samples{2});
  written.event(Kind::gap, 50'000'000);
  CHECK(written.finish() == "17.wav 0-100000002");
  const struct stat file = written.status("17.wav");
  CHECK(file.st_size == 44 + 2 * 100'000'002);
  CHECK(file.st_blocks * 512 < 1'000'000);
  CHECK(written.samples("17.wav", 50'000'000) == Samples{0, 2, 0});
  CHECK(written.samples("17.wav", 100'000'000) == Samples{0, 0});
}

TEST_CASE("with split, missing frames end a file") {
  Written written({.split = true});
  feed(written);
  CHECK(written.finish() == "17-1.wav 0-3, 17-2.wav 5-6");
  CHECK(written.samples("17-1.wav") == Samples{1, 2, 3});
  CHECK(written.samples("17-2.wav") == Samples{-4});
}

TEST_CASE("a file per segment ends at a flush, a reset and a gap") {
  Written written({.by_segment = true});
  feed(written);
  CHECK(written.finish() == "17-1.wav 0-2, 17-2.wav 2-3, 17-3.wav 5-6");
  CHECK(written.samples("17-2.wav") == Samples{3});
}

TEST_CASE("a stream without frames has no file") {
  Written written({});
  written.event(Kind::open);
  written.event(Kind::gap, 1000);
  written.event(Kind::end);
  CHECK(written.finish() == "");
}

TEST_CASE("floats are exported bit for bit, and equal streams to equal files") {
  const std::vector<float> values{0.1f, -1.5f, 3e-9f};
  std::string first;
  for (int i = 0; i < 2; ++i) {
    Written written({}, {.element = Element::f32});
    written.frames(values);
    CHECK(written.finish() == "17.wav 0-3");
    const std::string bytes = written.bytes("17.wav");
    CHECK(bytes.ends_with(std::string(reinterpret_cast<const char*>(values.data()), 12)));
    CHECK((first.empty() || bytes == first));
    first = bytes;
  }
}

TEST_CASE("an existing file is not overwritten") {
  Written written({});
  FileDescriptor(::openat(written.folder(), "17.wav", O_CREAT | O_WRONLY, 0600));
  const Samples one{1};
  const auto added = written.parts().add(
      {.event = {.kind = Kind::frames, .count = 1}, .frames = std::as_bytes(std::span(one))});
  REQUIRE_FALSE(added);
  CHECK(added.error() == "17.wav: File exists");
  CHECK(written.bytes("17.wav").empty());
}

TEST_CASE("frames that are not audio, or that the format does not have, are refused") {
  CHECK_FALSE(unsupported({}, AudioForm::flac));
  CHECK_FALSE(unsupported({.element = Element::f32, .values = 8}, AudioForm::wav));
  CHECK(*unsupported({.element = Element::f32, .values = 80, .rate = 100, .features = true},
                     AudioForm::wav) ==
        "its frames are features, not audio: read it in Python, with millrace.recordings");
  CHECK(unsupported({.element = Element::f16}, AudioForm::wav));
  CHECK(*unsupported({.element = Element::f32}, AudioForm::flac) ==
        "its frames are f32, and FLAC has only integers: use --format wav");
  CHECK(unsupported({.values = 9}, AudioForm::flac));
  CHECK(unsupported({.rate = 12.5}, AudioForm::wav));
}

}  // namespace
}  // namespace millrace::recordings
