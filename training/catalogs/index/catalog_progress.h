// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::training {

// Progress while an index is made: `done` of `total` files are read. `total` is at least 1.
using CatalogProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace millrace::training
