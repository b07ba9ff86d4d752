// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "chunker/spec.h"

namespace millrace::training {

// How batches are made of the streams.
enum class PlanMode : std::uint8_t { stateful, stateless, returnn_classic, returnn_torch };

// The options of a plan. A limit of 0 is no limit.
struct PlanOptions {
  PlanMode mode = PlanMode::stateful;
  // How streams are cut; nullopt: whole streams, stateless only.
  std::optional<ChunkRule> chunk;
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: in the order of the catalog

  std::uint32_t slots = 0;  // all ranks together; stateful only

  // Not stateful: the order of streams by their lengths, as in LengthOrder; empty: none. RETURNN's
  // modes and whole streams.
  std::string order{};

  // Stateless only.
  std::uint32_t rows = 0;                // most rows of a batch of one rank
  std::uint64_t max_padded_frames = 0;   // most rows x columns; RETURNN's batch_size
  double max_waste = 0;                  // largest share of padding columns, 0 ... 1
  std::uint64_t shuffle_window = 0;      // streams that are permuted together; 0: all
  std::vector<std::uint32_t> buckets{};  // longest windows of the groups by length, ascending
  std::uint32_t bucket_count = 0;        // instead of `buckets`: the limits follow from the lengths
  bool drop_last = true;                 // leave out batches that not every rank gets

  // RETURNN's modes only.
  std::uint64_t packed_batch_size = 0;  // most frames of a batch without padding
  std::uint64_t max_pad_size = 0;       // most padding frames of a batch

  std::vector<std::uint32_t> width_buckets{};  // widths of batches, ascending; empty: one width
  // How often each part of the catalog (Catalog::parts) comes per epoch; empty: once.
  std::vector<double> frequencies{};

  // Frames of a stream in an epoch, where a function changes them; empty: as in the catalog.
  // `copy`: copies of the stream before this one in the epoch.
  std::function<std::uint64_t(std::uint64_t epoch, std::uint64_t stream, std::uint32_t copy)>
      frames{};
};

// An option that is wrong: the message names the key, the value and the allowed values.
struct PlanError {
  std::string key;
  std::string message;
};

}  // namespace millrace::training
