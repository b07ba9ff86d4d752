// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// A part of a split, and the fraction of the streams that it gets.
struct SplitPart {
  std::string name;
  double fraction = 0;
  bool operator==(const SplitPart&) const = default;
};

// The part that all parts of a split leave.
inline constexpr std::string_view rest_part = "train";

// Which streams of a catalog are used, and how they are divided.
struct Selection {
  // Sorted by name. A hash of Catalog::unit() decides, so that a stream never changes its part when
  // others are added. Empty: all streams are used.
  std::vector<SplitPart> split{};
  std::string part{rest_part};  // streams of this part are used
  std::uint64_t longest = 0;    // frames of a stream; longer ones are divided; 0: no limit
};

// The selected streams; the catalog itself if these are all of its streams as they are. Streams of
// another part do not change the digest.
Result<std::shared_ptr<const Catalog>, PlanError> select_streams(
    std::shared_ptr<const Catalog> catalog, const Selection& selection);

}  // namespace millrace::training
