// SPDX-License-Identifier: Apache-2.0
// Measures the opening of indexed catalogs, and the reading of rows of audio files beside the bare
// library. Both take turns, so that other load on the machine affects them alike. Rates of reading
// are by the CPU time of the thread.
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "bench/options.h"
#include "tests/support/audio_files.h"
#include "tests/support/temporary_directory.h"
#include "training/catalogs/index/index.h"
#include "training/catalogs/open_catalog.h"

using namespace millrace;
using namespace millrace::training;

namespace {

constexpr int rate = 16000;
constexpr std::uint64_t row = rate / 10;

// The value of a result; an error ends the program.
template <class T, class E>
T good(Result<T, E> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double milliseconds(const std::function<void()>& run) {
  const Time begin = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// CPU time of this thread, in seconds.
double cpu(const std::function<void()>& run) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  run();
  return now() - begin;
}

std::shared_ptr<const Catalog> open(const std::string& path, Element element = Element::s16) {
  CatalogSettings settings;
  settings.path = path;
  settings.frames = element;
  return good(open_catalog(settings));
}

// A voice-like tone with noise.
std::vector<std::int16_t> tone(std::size_t frames) {
  std::mt19937 random(1);
  std::vector<std::int16_t> values(frames);
  for (std::size_t i = 0; i < frames; ++i)
    values[i] = static_cast<std::int16_t>(6000 * std::sin(0.05 * static_cast<double>(i)) +
                                          static_cast<double>(random() % 400));
  return values;
}

void print_opening(std::uint64_t files, int runs) {
  const TemporaryDirectory folder;
  const std::vector<std::int16_t> values(row);
  for (std::uint64_t i = 0; i < files; ++i) {
    const std::string below = folder / std::to_string(i / 100);
    if (i % 100 == 0) std::filesystem::create_directory(below);
    write_audio(below + "/" + std::to_string(i) + ".wav", values);
  }
  const double first = milliseconds([&] { open(folder.path()); });
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(milliseconds([&] { open(folder.path()); }));
  std::printf("%llu files: first opening %.0f ms, later %.1f ms\n",
              static_cast<unsigned long long>(files), first, median(times));
}

void print_mapping(std::uint64_t streams, int runs) {
  const TemporaryDirectory folder;
  const std::string path = folder / "index";
  {
    IndexBuilder builder;
    for (std::uint64_t i = 0; i < streams; ++i) {
      const std::string name = "speaker/book/" + std::to_string(i);
      builder.add({.frames = 160'000, .name = name, .path = name + ".wav", .place = 44});
    }
    const auto bytes = builder.finish({}, true);
    FILE* file = std::fopen(path.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(1000 * cpu([&] { (void)Index::map(path); }));
  std::printf("index of %llu streams, %.0f MB: %.1f ms of CPU time\n",
              static_cast<unsigned long long>(streams),
              static_cast<double>(std::filesystem::file_size(path)) / 1e6, median(times));
}

// Reads a stream in rows of 100 ms into one row.
void read_rows(const Catalog& catalog) {
  const auto reader = catalog.reader();
  const auto stream = good(reader->open(0));
  std::vector<std::byte> into(row * catalog.frame_type().bytes());
  for (std::uint64_t at = 0; at + row <= catalog.frames(0); at += row) {
    const Bytes frames = good(stream->frames(at, row));
    std::memcpy(into.data(), frames.data(), frames.size());
  }
}

void read_bare(const std::string& path) {
  SF_INFO format{};
  SNDFILE* file = sf_open(path.c_str(), SFM_READ, &format);
  std::vector<short> into(row);
  while (sf_readf_short(file, into.data(), row) > 0) {
  }
  sf_close(file);
}

void print_reading(const char* name, int format, int runs) {
  const TemporaryDirectory folder;
  const std::string path = folder / "a.wav";
  constexpr int seconds = 120;
  write_audio(path, tone(std::size_t{rate} * seconds), {.format = format, .rate = rate});
  for (const Element element : {Element::s16, Element::f32}) {
    const auto catalog = open(folder.path(), element);
    std::vector<double> ours, control;
    for (int i = 0; i < runs; ++i) {
      ours.push_back(cpu([&] { read_rows(*catalog); }));
      control.push_back(cpu([&] { read_bare(path); }));
    }
    const double ratio = median(control) / median(ours);
    std::printf("%-5s %-3s %7.0f h/s, %.2f us per row; bare libsndfile %7.0f h/s; ratio %.2f\n",
                name, std::string(name_of(element)).c_str(), seconds / median(ours) / 3600,
                median(ours) * 1e6 / (seconds * 10), seconds / median(control) / 3600, ratio);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t files = 10'000, streams = 1'250'000;
  int runs = 15;
  bench::Options("Opening of catalogs, and reading of audio files")
      .add("--files", files, "Files of the folder that is opened")
      .add("--streams", streams, "Streams of the index that is mapped")
      .add("--runs", runs, "Runs of each figure; the median is printed")
      .parse(argc, argv);
  print_opening(files, runs);
  print_mapping(streams, runs);
  print_reading("WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16, runs);
  print_reading("FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, runs);
  print_reading("Ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, runs);
}
