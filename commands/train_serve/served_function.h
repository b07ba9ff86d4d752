// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "commands/train_serve/plan_table.h"
#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"

namespace millrace {

// The function of the key `augment`, in processes of Python that load it: `python -m
// millrace.augment_process`.
struct ServedFunction {
  std::shared_ptr<training::StreamFunction> function;
  bool changes_lengths = false;
};

// Starts the processes. Throws std::runtime_error if they cannot load the function.
ServedFunction start_function(const AugmentKeys& keys, std::uint64_t seed,
                              const std::shared_ptr<const training::Catalog>& catalog);

}  // namespace millrace
