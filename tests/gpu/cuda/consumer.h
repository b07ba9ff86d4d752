// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "gpu/cuda/fetcher.h"

namespace millrace::test {

// A model's stream on a device, given by its name. On the host it has no stream, and copies at
// once.
std::unique_ptr<cuda::Fetcher> consumer_on(std::string_view device);

// Copies device memory to the host, after the work that is on the consumer's stream now.
std::vector<std::byte> fetch(cuda::Fetcher& consumer, const void* from, std::size_t bytes);

}  // namespace millrace::test
