// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <atomic>
#include <span>
#include <stdexcept>
#include <thread>

#include "tests/training/catalogs/catalog_under_test.h"
#include "training/catalogs/index/audio_scan.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

// A folder with an index.
struct Indexed {
  Indexed() : counted(folder.path()) {
    folder.add("a.wav", 1000, 1);
    folder.add("sub/b.wav", 2000, 2);
    open_good(counted.settings);
    REQUIRE(counted.made == 1);
  }
  int made_again() {
    open_good(counted.settings);
    return counted.made - 1;
  }
  std::string index() const { return folder / ".millrace/index"; }

  AudioFolder folder;
  CountedSettings counted;
};

}  // namespace

TEST_CASE("an index is made once") {
  Indexed indexed;
  CHECK(fs::exists(indexed.index()));
  CHECK(indexed.made_again() == 0);
}

TEST_CASE("an index is made again if a file has another size, another time or another name") {
  Indexed indexed;
  SECTION("size") {
    const auto time = fs::last_write_time(indexed.folder / "sub/b.wav");
    indexed.folder.add("sub/b.wav", 2001, 2);
    fs::last_write_time(indexed.folder / "sub/b.wav", time);
  }
  SECTION("time") {
    fs::last_write_time(indexed.folder / "sub/b.wav",
                        fs::last_write_time(indexed.folder / "a.wav") + std::chrono::seconds(1));
  }
  SECTION("added") { indexed.folder.add("sub/c.wav", 10, 3); }
  SECTION("removed") { fs::remove(indexed.folder / "a.wav"); }
  SECTION("a folder added") { indexed.folder.add("other/c.wav", 10, 3); }
  CHECK(indexed.made_again() == 1);
}

TEST_CASE("an index that was cut at any byte, or is damaged, is made again") {
  Indexed indexed;
  const std::string good = content_of(indexed.index());
  REQUIRE(good.size() > 200);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes part = std::as_bytes(std::span(good)).first(size);
    std::vector<std::byte> cut(part.begin(), part.end());
    REQUIRE(!Index::from(std::move(cut)).has_value());
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> changed(good.size());
    std::memcpy(changed.data(), good.data(), good.size());
    changed[at] ^= std::byte{1};
    REQUIRE(!Index::from(std::move(changed)).has_value());
  }
  write_text(indexed.index(), good.substr(0, good.size() / 2));
  CHECK(indexed.made_again() == 1);
  CHECK(indexed.made_again() == 1);
  CHECK(content_of(indexed.index()).size() == good.size());
}

TEST_CASE("an index beside data that cannot be written is in the user's cache") {
  AudioFolder folder;
  folder.add("a.wav", 1000, 1);
  write_text(folder / ".millrace", "a file, so that no folder can have the name");
  CountedSettings counted(folder.path());
  open_good(counted.settings);
  CHECK(!fs::is_empty(folder.cache() + "/millrace"));
  open_good(counted.settings);
  CHECK(counted.made == 1);
}

TEST_CASE("a catalog works without a place for its index") {
  AudioFolder folder;
  const Samples samples = folder.add("a.wav", 1000, 1);
  write_text(folder / ".millrace", "a file, so that no folder can have the name");
  fs::remove(folder.cache());
  write_text(folder.cache(), "a file");
  CHECK(read_all<std::int16_t>(*open_good({.path = folder.path()}), 0) == samples);
  fs::remove(folder.cache());
}

TEST_CASE("an index of files that were just changed is made again") {
  AudioFolder folder;
  CountedSettings counted(folder.path());
  counted.settings.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (done == 0) folder.add("b.wav", 10, 1);
    counted.made += done == total;
  };
  folder.add("a.wav", 1000, 1);
  open_good(counted.settings);
  CHECK(open_good(counted.settings)->size() == 2);
}

TEST_CASE("an exception of the progress stops the opening and leaves no index") {
  AudioFolder folder;
  for (std::uint32_t i = 0; i < 200; ++i) folder.add(std::to_string(i) + ".wav", 10, i);
  CatalogSettings settings{.path = folder.path()};
  settings.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("stopped"); };
  CHECK_THROWS_WITH(open_catalog(settings), "stopped");
  CHECK(fs::is_empty(folder / ".millrace"));
}

TEST_CASE("an exception on another thread stops the scan of files, and is thrown") {
  const auto own = std::this_thread::get_id();
  const bool alone = std::thread::hardware_concurrency() < 2;
  std::atomic<bool> failed = false;
  const KnownFile known = [&](std::size_t) -> std::optional<ScannedFile> {
    if (std::this_thread::get_id() == own && !alone) {
      failed.wait(false);
      return ScannedFile{};
    }
    failed = true;
    failed.notify_all();
    throw std::runtime_error("no memory");
  };
  const PathOf path = [](std::size_t) { return "a.wav"; };
  CHECK_THROWS_WITH(scan_files(200, path, known, {}), "no memory");
}

TEST_CASE("an index that is made again has the old files and the new ones") {
  Indexed indexed;
  indexed.folder.add("0.wav", 10, 3);
  indexed.folder.add("sub/b.wav", 77, 2);
  const auto catalog = open_good(indexed.counted.settings);
  REQUIRE(catalog->size() == 3);
  CHECK(catalog->frames(0) == 10);
  CHECK(catalog->frames(1) == 1000);
  CHECK(catalog->frames(2) == 77);
  CHECK(read_all<std::int16_t>(*catalog, 1) == noise(1000, 1));
  CHECK(read_all<std::int16_t>(*catalog, 2) == noise(77, 2));
}

TEST_CASE("temporary files of killed processes are removed after an hour") {
  AudioFolder folder;
  folder.add("a.wav", 10, 1);
  fs::create_directory(folder / ".millrace");
  write_text(folder / ".millrace/index.abcdef.part", "old");
  write_text(folder / ".millrace/index.ghijkl.part", "new");
  fs::last_write_time(folder / ".millrace/index.abcdef.part",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  open_good({.path = folder.path()});
  CHECK(!fs::exists(folder / ".millrace/index.abcdef.part"));
  CHECK(fs::exists(folder / ".millrace/index.ghijkl.part"));
}

TEST_CASE("paths of an index are relative to its base") {
  CHECK(path_in("x", "a/b") == "x/a/b");
  CHECK(path_in("x", "/a") == "/a");
  CHECK(path_in("x", "") == "x");
  CHECK(path_in("", "a") == "a");
}

TEST_CASE("progress ends with all files") {
  AudioFolder folder;
  for (std::uint32_t i = 0; i < 200; ++i) folder.add(std::to_string(i) + ".wav", 10, i);
  CatalogSettings settings{.path = folder.path()};
  std::uint64_t last = 0;
  settings.progress = [&](std::uint64_t done, std::uint64_t total) {
    CHECK(done >= last);
    CHECK(total == 200);
    last = done;
  };
  open_good(settings);
  CHECK(last == 200);
}

TEST_CASE("a catalog stays as it was opened when its index is made again") {
  Indexed indexed;
  const auto before = open_good(indexed.counted.settings);
  indexed.folder.add("0.wav", 10, 3);
  const auto after = open_good(indexed.counted.settings);
  CHECK(before->size() == 2);
  CHECK(before->name(0) == "a");
  CHECK(after->size() == 3);
  CHECK(after->name(0) == "0");
}

}  // namespace millrace::training
