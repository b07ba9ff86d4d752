// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/idle_sources.h"

#include <catch2/catch.hpp>

namespace millrace::training {
namespace {

// A file that counts as open while it exists.
struct CountedFile {
  CountedFile(int& the_open, std::size_t the_memory, std::size_t the_descriptors)
      : open(++the_open), bytes(the_memory), files(the_descriptors) {}
  ~CountedFile() { --open; }
  CountedFile(const CountedFile&) = delete;
  CountedFile& operator=(const CountedFile&) = delete;

  bool is_current() const { return current; }
  static void put_away() {}
  std::size_t memory() const { return bytes; }
  std::size_t descriptors() const { return files; }

  int& open;
  std::size_t bytes, files;
  bool current = true;
};

using IdleFiles = IdleSources<CountedFile>;

}  // namespace

TEST_CASE("an idle file is taken once") {
  int open = 0;
  IdleFiles idle;
  idle.put(7, std::make_unique<CountedFile>(open, 10, 1));
  CHECK(idle.take(6) == nullptr);
  CHECK(idle.take(7) != nullptr);
  CHECK(open == 0);
  CHECK(idle.take(7) == nullptr);
}

TEST_CASE("an idle file that is not current any more is closed") {
  int open = 0;
  IdleFiles idle;
  auto file = std::make_unique<CountedFile>(open, 10, 1);
  file->current = false;
  idle.put(7, std::move(file));
  CHECK(idle.take(7) == nullptr);
  CHECK(open == 0);
}

TEST_CASE("files, descriptors and memory of idle files are bounded") {
  int open = 0;
  IdleFiles idle;
  const auto put = [&](int files, std::size_t memory, std::size_t descriptors) {
    for (int stream = 0; stream < files; ++stream)
      idle.put(static_cast<std::uint64_t>(stream),
               std::make_unique<CountedFile>(open, memory, descriptors));
  };
  SECTION("files") {
    put(1000, 0, 0);
    CHECK(open == IdleFiles::most_files);
  }
  SECTION("descriptors") {
    put(1000, 0, 1);
    CHECK(open == IdleFiles::most_descriptors);
  }
  SECTION("memory") {
    put(100, IdleFiles::most_memory / 10, 0);
    CHECK(open == 10);
    CHECK(idle.take(99) != nullptr);
    CHECK(idle.take(0) == nullptr);  // the oldest ones are closed
  }
  SECTION("a file that is larger than all may be") {
    put(1, IdleFiles::most_memory + 1, 1);
    CHECK(open == 0);
  }
}

}  // namespace millrace::training
