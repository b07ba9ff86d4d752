// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_ranks.h"

#include <catch2/catch.hpp>

using millrace::training::TrainerRanks;
using millrace::worker_protocol::TrainerHello;

TEST_CASE("two trainers of one rank are in conflict, those of two ranks are not") {
  TrainerRanks ranks;
  ranks.add(1, {.rank = 1, .world = 4});
  CHECK(ranks.conflict({.rank = 1, .world = 4}) == "rank 1 is in use by another trainer");
  CHECK(ranks.conflict({.rank = 1, .world = 4, .epoch = 7, .step = 3}));
  CHECK_FALSE(ranks.conflict({.rank = 2, .world = 4}));
  ranks.remove(1);
  CHECK_FALSE(ranks.conflict({.rank = 1, .world = 4}));
}

TEST_CASE("trainers of one rank share it by a stride") {
  TrainerRanks ranks;
  ranks.add(1, {.step = 4, .stride = 2});
  CHECK_FALSE(ranks.conflict({.step = 7, .stride = 2}));
  CHECK(ranks.conflict({.step = 6, .stride = 2}));
  CHECK(ranks.conflict({.step = 7, .stride = 3}));  // both have step 10
  CHECK_FALSE(ranks.conflict({.step = 7, .stride = 4}));
  CHECK(ranks.conflict({.step = 6, .stride = 4}));
}

TEST_CASE("trainers of another world are in conflict with all trainers") {
  TrainerRanks ranks;
  ranks.add(1, {.rank = 0, .world = 4});
  CHECK(ranks.conflict({.rank = 1, .world = 2}) ==
        "trainers with world = 4 are attached; this one has world = 2");
  ranks.remove(1);
  CHECK_FALSE(ranks.conflict({.rank = 1, .world = 2}));
}
