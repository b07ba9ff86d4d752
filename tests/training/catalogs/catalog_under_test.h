// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/audio_files.h"
#include "tests/support/temporary_directory.h"
#include "training/catalogs/open_catalog.h"

namespace millrace::training {

using Samples = std::vector<std::int16_t>;
using SharedCatalog = std::shared_ptr<const Catalog>;

inline SharedCatalog open_good(const CatalogSettings& settings) {
  auto opened = open_catalog(settings);
  if (!opened) FAIL(opened.error().message);
  return std::move(*opened);
}

inline std::string error_of(const CatalogSettings& settings) {
  const auto opened = open_catalog(settings);
  return opened ? std::string() : opened.error().message;
}

template <class Value>
std::vector<Value> values_of(Bytes bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::unique_ptr<FrameReader> open_stream(CatalogReader& reader, std::uint64_t stream) {
  auto opened = reader.open(stream);
  if (!opened) FAIL(opened.error().message);
  return std::move(*opened);
}

template <class Value>
std::vector<Value> read(FrameReader& stream, std::uint64_t begin, std::uint64_t count) {
  const auto frames = stream.frames(begin, count);
  if (!frames) FAIL(frames.error().message);
  return values_of<Value>(*frames);
}

// All frames of a stream, in rows.
template <class Value>
std::vector<Value> read_all(const Catalog& catalog, std::uint64_t stream,
                            std::uint64_t row = 1000) {
  const auto reader = catalog.reader();
  const auto opened = open_stream(*reader, stream);
  std::vector<Value> all;
  for (std::uint64_t at = 0; at < catalog.frames(stream); at += row) {
    const auto part = read<Value>(*opened, at, std::min(row, catalog.frames(stream) - at));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

inline Samples part_of_samples(const Samples& samples, std::size_t begin, std::size_t count) {
  const auto first = samples.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A folder with audio files, and no cache of the user.
class AudioFolder {
 public:
  AudioFolder() { ::setenv("XDG_CACHE_HOME", (cache_.path()).c_str(), 1); }

  Samples add(const std::string& name, std::size_t frames, std::uint32_t seed,
              const WrittenFormat& format = {}) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    Samples samples = noise(frames * static_cast<std::size_t>(format.channels), seed);
    write_audio(path, samples, format);
    return samples;
  }
  const std::string& path() const { return folder_.path(); }
  const std::string& cache() const { return cache_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_, cache_;
};

// Settings that count how often an index was made.
struct CountedSettings {
  int made = 0;
  CatalogSettings settings;

  explicit CountedSettings(const std::string& path) {
    settings.path = path;
    settings.progress = [this](std::uint64_t done, std::uint64_t total) { made += done == total; };
  }
};

}  // namespace millrace::training
