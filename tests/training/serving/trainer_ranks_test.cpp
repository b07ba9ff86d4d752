// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_ranks.h"

#include <catch2/catch.hpp>

using millrace::Time;
using millrace::training::TrainerRanks;
using millrace::worker_protocol::TrainerHello;
using namespace std::chrono_literals;

namespace {

constexpr Time begin{1h}, now = begin + 12s;

}  // namespace

TEST_CASE("two trainers of one rank are in conflict, those of two ranks are not") {
  TrainerRanks ranks;
  ranks.add(1, {.rank = 1, .world = 4}, "train.py 8849", begin);
  CHECK(ranks.conflict({.rank = 1, .world = 4}, now) ==
        "rank 1 is in use by train.py 8849, which has been attached for 12 s");
  CHECK(ranks.conflict({.rank = 1, .world = 4, .epoch = 7, .step = 3}, now));
  CHECK_FALSE(ranks.conflict({.rank = 2, .world = 4}, now));
  ranks.remove(1);
  CHECK_FALSE(ranks.conflict({.rank = 1, .world = 4}, now));
}

TEST_CASE("trainers of one rank share it by a stride") {
  TrainerRanks ranks;
  ranks.add(1, {.step = 4, .stride = 2}, "t", begin);
  CHECK_FALSE(ranks.conflict({.step = 7, .stride = 2}, now));
  CHECK(ranks.conflict({.step = 6, .stride = 2}, now));
  CHECK(ranks.conflict({.step = 7, .stride = 3}, now));  // both have step 10
  CHECK_FALSE(ranks.conflict({.step = 7, .stride = 4}, now));
  CHECK(ranks.conflict({.step = 6, .stride = 4}, now));
}

TEST_CASE("trainers of another world are in conflict with all trainers") {
  TrainerRanks ranks;
  ranks.add(1, {.rank = 0, .world = 4}, "train.py 8849", begin);
  CHECK(ranks.conflict({.rank = 1, .world = 2}, now) ==
        "world = 4 is in use by train.py 8849, which has been attached for 12 s; this trainer has "
        "world = 2");
  ranks.remove(1);
  CHECK_FALSE(ranks.conflict({.rank = 1, .world = 2}, now));
}

TEST_CASE("the name of a trainer in a refusal is one printable line") {
  TrainerRanks ranks;
  ranks.add(1, {}, "a\nb\x1b[31m", begin);
  CHECK(ranks.conflict({}, now) ==
        "rank 0 is in use by a b [31m, which has been attached for 12 s");
}
