// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "training/catalogs/index/index.h"

namespace millrace::training {

// Which recordings of a directory the index has, among those that are made later: a JSON object
// with the last number, and the ranges of lower numbers that the index does not have. These
// recordings were open, are of another pipeline, or were deleted. Lists the last 1000 ranges only.
//
//   {"last": 9, "missing": [[0, 0], [4, 5]]}
std::string extent_of(const Index& index);

// The streams of this extent, as an index of their own. A stream of the directory `folder` that has
// got a part since is read again. nullopt: there are none, or the text is no extent. Throws
// std::runtime_error if the disk fails.
std::optional<Index> within(const Index& index, const std::string& folder,
                            const std::string& extent);

}  // namespace millrace::training
