// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "chunker/spec.h"

namespace millrace::training {

// The sizes that the service chooses for the bodies of one stream, if its rule has sizes and its
// rows never wait. `adaptive` counts as `fixed`: training has no load. `rule` must outlive it.
class BodyChoice {
 public:
  BodyChoice(const ChunkRule& rule, std::string_view stream) : rule_(&rule) {
    if (rule.sizes.by == SizeRule::By::random) draws_.emplace(rule.sizes, stream);
  }

  // The frames of the body of the row with frames number `row`.
  std::uint32_t body(std::uint64_t row, bool first_of_run) const {
    const std::uint32_t size = draws_ ? (*draws_)[row] : rule_->spec.size;
    return first_of_run ? rule_->first_body(size) : size;
  }

 private:
  const ChunkRule* rule_;
  std::optional<SizeDraws> draws_;
};

}  // namespace millrace::training
