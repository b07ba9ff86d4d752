// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/service_rows.h"

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

}  // namespace millrace::training
