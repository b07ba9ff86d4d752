// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "chunker/spec.h"

namespace millrace::test {

// Draws the actions of a random play.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  std::uint32_t operator()(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  bool chance(std::uint32_t percent) { return (*this)(1, 100) <= percent; }

 private:
  std::mt19937 random_;
};

inline SizeRule random_sizes(Draw& draw) {
  const bool is_range = draw.chance(30);
  SizeRule rule{.by = is_range ? SizeRule::By::random : static_cast<SizeRule::By>(draw(0, 2)),
                .seed = draw(0, 1000),
                .per = static_cast<SizeRule::Per>(draw(0, 1))};
  const std::uint32_t from = draw(1, 20), step = draw(1, 8);
  if (is_range) {
    rule.sizes = SizeList(from, from + step * draw(1, 9), step);
  } else {
    std::vector<std::uint32_t> sizes{from};
    for (std::uint32_t more = draw(1, 4); more > 0; --more)
      sizes.push_back(sizes.back() + draw(1, 12));
    rule.sizes = SizeList(std::move(sizes));
  }
  return rule;
}

inline std::uint32_t one_of(const SizeList& sizes, Draw& draw) {
  return sizes[draw(0, static_cast<std::uint32_t>(sizes.size()) - 1)];
}

inline ChunkRule random_rule(Draw& draw) {
  ChunkRule rule;
  Spec& spec = rule.spec;
  spec = {.left = draw(0, 30),
          .right = draw(0, 20),
          .tail = static_cast<Spec::Tail>(draw(0, 2)),
          .min = draw(0, 9)};
  if (draw.chance(80)) {
    rule.sizes = random_sizes(draw);
    spec.size = one_of(rule.sizes.sizes, draw);
    const std::uint32_t shortest = spec.size - rule.sizes.sizes.smallest() + 1;
    if (draw.chance(50)) spec.first = draw(shortest, spec.size + 20);
    return rule;
  }
  do {
    spec.size = draw(1, 30);
    spec.step = draw.chance(50) ? draw(1, 40) : 0;
    spec.first = draw.chance(50) ? draw(1, 40) : 0;
  } while (!spec.check());
  return rule;
}

}  // namespace millrace::test
