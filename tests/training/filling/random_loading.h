// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "chunker/rule_json.h"
#include "tests/training/filling/loading.h"
#include "tests/training/plans/read_plan.h"
#include "tests/training/plans/service_rows.h"
#include "training/contract/plan_options.h"
#include "training/plans/make_plan.h"

namespace millrace::test {

// A random catalog with frames, events and companions, a stateful plan of it, and loaders.
struct RandomLoading {
  explicit RandomLoading(std::mt19937_64& random) {
    const bool floats = random() % 3 == 0;
    catalog = std::make_shared<MemoryCatalog>(
        FrameType{.element = floats ? Element::f32 : Element::s16,
                  .values = static_cast<std::uint32_t>(1 + random() % 2)});
    if (random() % 2 == 0)
      catalog->set_companions({{.name = "third", .frames_per_entry = 3},
                               {.name = "two", .values = 2, .entries_per_frame = 2}});
    const std::uint64_t streams = 1 + random() % 12;
    for (std::uint64_t i = 0; i < streams; ++i) add_stream(random, i == 0);
    options.chunk = training::random_rule(random, random() % 3 == 0);
    options.chunk->pad = random() % 2 == 0 ? Pad::zero : Pad::repeat;
    options.seed = random() % 4;
    options.shuffle = random() % 4 > 0;
    world = static_cast<std::uint32_t>(1 + random() % std::min<std::uint64_t>(3, streams));
    options.slots = world * static_cast<std::uint32_t>(1 + random() % (streams / world));
    const std::uint32_t width = options.chunk->width();
    if (random() % 3 == 0 && width > 1) options.width_buckets = {(width + 1) / 2, width};
    dtype = floats || random() % 2 == 0 ? Element::f32 : Element::s16;
  }

  std::string text() const {
    return to_json(*options.chunk) + " streams " + std::to_string(catalog->size()) + " slots " +
           std::to_string(options.slots) + " world " + std::to_string(world);
  }
  // False: no stream has a row with frames.
  bool has_rows() const { return training::make_plan(*catalog, options, {}).has_value(); }

  RowFormat format() const {
    return {.frames = catalog->frame_type().element,
            .dtype = dtype,
            .values = catalog->frame_type().values,
            .context = options.chunk->columns().context,
            .repeat = options.chunk->pad == Pad::repeat};
  }

  training::Loader loader(training::LoaderSettings settings) const {
    settings.context = format().context;
    settings.repeat = format().repeat;
    settings.dtype = dtype;
    return {catalog, training::plan_of(*catalog, options, settings.rank), settings};
  }
  training::Loader loader(std::mt19937_64& random, training::Rank rank = {}) const {
    return loader({.rank = rank,
                   .threads = static_cast<std::uint32_t>(random() % 4),
                   .prefetch = static_cast<std::uint32_t>(random() % 4)});
  }

  std::shared_ptr<MemoryCatalog> catalog;
  training::PlanOptions options;
  std::uint32_t world = 1;
  Element dtype = Element::s16;

 private:
  static std::vector<std::byte> values(std::mt19937_64& random, std::size_t count, bool floats) {
    std::vector<std::int16_t> numbers(count);
    for (auto& number : numbers) number = static_cast<std::int16_t>(random());
    if (!floats) return bytes_of(numbers);
    return bytes_of(std::vector<float>(numbers.begin(), numbers.end()));
  }

  void add_stream(std::mt19937_64& random, bool long_enough) {
    const std::uint64_t frames = long_enough || random() % 8 > 0 ? 20 + random() % 60 : 0;
    MemoryStream stream;
    const auto& type = catalog->frame_type();
    stream.frames = values(random, frames * type.values, type.element == Element::f32);
    for (const CompanionFormat& format : catalog->companions())
      stream.companions.push_back(values(random, format.entries_of(frames) * format.values, true));
    if (random() % 3 == 0) stream.events = training::random_events(frames, random);
    catalog->add(std::move(stream));
  }
};

// Calls the test with random loadings.
template <class Test>
void with_loadings(int rounds, std::uint64_t seed, Test test) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds; ++i) {
    const RandomLoading loading(random);
    INFO(loading.text());
    if (loading.has_rows()) test(loading, random);
  }
}

}  // namespace millrace::test
