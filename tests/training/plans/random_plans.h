// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "chunker/rule_json.h"
#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/service_rows.h"
#include "training/plans/make_plan.h"
#include "training/plans/origin.h"

namespace millrace::training {

// Up to `most` short streams, of which some have no frames, and some inner events.
inline ListedCatalog random_catalog(std::mt19937_64& random, std::size_t most, bool events) {
  std::vector<std::uint64_t> lengths(1 + random() % most);
  for (std::uint64_t& length : lengths) length = random() % 8 == 0 ? 0 : 1 + random() % 50;
  lengths[random() % lengths.size()] = 40;  // has rows under each rule
  ListedCatalog catalog(lengths);
  for (std::size_t i = 0; events && i < lengths.size(); ++i)
    if (random() % 3 == 0) catalog.add_events(i, random_events(lengths[i], random));
  return catalog;
}

// A random plan, and the world of its ranks.
struct PlanCase {
  ListedCatalog catalog;
  PlanOptions options;
  std::uint32_t world = 1;
  std::uint64_t epoch = 0;
};

// The rows of a stream in the service. Requires: the plan has a rule.
inline std::vector<CutRow> live_rows(const PlanCase& one, std::uint64_t stream) {
  std::mt19937_64 random(0);
  ChunkRule rule = *one.options.chunk;
  if (rule.sizes.by == SizeRule::By::adaptive) rule.sizes.by = SizeRule::By::fixed;
  rule.sizes.seed += one.epoch;
  return planned(service_rows(rule, one.catalog.name(stream), one.catalog.events(stream),
                              one.catalog.frames(stream), random));
}

// Calls the test with the plans of `make` that have rows, and steps for each rank.
template <class Test>
void with_plans(int rounds, std::uint64_t seed, PlanCase (*make)(std::mt19937_64&), Test test) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds; ++i) {
    const PlanCase one = make(random);
    INFO(origin_of(one.catalog, one.options) << " world " << one.world << " epoch " << one.epoch);
    const auto plan = make_plan(one.catalog, one.options, {0, one.world});
    if (!plan) {
      REQUIRE(plan.error().key == "streams");  // no stream is long enough
      continue;
    }
    try {
      (void)(*plan)->epoch(one.epoch);
    } catch (const EmptyEpoch&) {  // too few batches for the ranks
      CHECK((one.world > 1 && one.options.slots == 0));
      continue;
    }
    test(one, **plan, random);
  }
}

}  // namespace millrace::training
