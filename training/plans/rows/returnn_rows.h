// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "chunker/row_arithmetic.h"
#include "chunker/spec.h"

namespace millrace::training {

// RETURNN's two ways to cut a sequence. They differ in short sequences and short last chunks.
//
//   classic  the first chunk always; a later one if more than `min` frames remain
//   torch    each chunk that has at least `min` frames
enum class Returnn : std::uint8_t { classic, torch };

// The chunks of a sequence. They have no marker row. Uses size, step and min of the spec.
RowCounts count_chunks(Returnn backend, const Spec& spec, std::uint64_t frames);
// Chunk number `j`. Each chunk is a run of its own. Requires: counts = count_chunks(...).
Row chunk_at(const Spec& spec, std::uint64_t frames, const RowCounts& counts, std::uint64_t j);

}  // namespace millrace::training
