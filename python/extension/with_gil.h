// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "python/extension/without_gil.h"

namespace millrace::python {

// Holds the GIL while it exists, on a thread that has released it by `released`.
class WithGil {
 public:
  explicit WithGil(std::optional<WithoutGil>& released) : released_(released) { released_.reset(); }
  ~WithGil() { released_.emplace(); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  std::optional<WithoutGil>& released_;
};

}  // namespace millrace::python
