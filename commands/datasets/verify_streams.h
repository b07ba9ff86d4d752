// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "training/contract/catalog.h"

namespace millrace {

// A stream that cannot be delivered.
struct BadStream {
  std::uint64_t stream = 0;
  std::string message{};  // names the file
};

// Reads all streams to their end, on several threads. Returns those that are not good, by number.
// `progress(done)` is called on this thread between two streams. If a reader or `progress` throws,
// it stops and throws the same.
std::vector<BadStream> verify_streams(const training::Catalog& catalog,
                                      const std::function<void(std::uint64_t)>& progress);

}  // namespace millrace
