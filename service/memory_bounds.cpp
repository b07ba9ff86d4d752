// SPDX-License-Identifier: Apache-2.0
#include "service/memory_bounds.h"

#include <limits>

#include "chunker/ready_row.h"
#include "gpu/slab_layout.h"
#include "gpu/slab_ring.h"

namespace millrace {

namespace {

// A configuration may ask for more than 64 bits hold; it is refused for it, not wrapped.
std::size_t product(std::initializer_list<std::size_t> factors) {
  std::size_t all = 1;
  for (const std::size_t factor : factors)
    if (__builtin_mul_overflow(all, factor, &all)) return std::numeric_limits<std::size_t>::max();
  return all;
}

std::size_t slab_bytes(const PipelineOptions& pipeline) {
  const SlabShape shape{.rows = pipeline.batch.rows,
                        .marks = pipeline.batch.slots,
                        .width = pipeline.chunk.spec.width(),
                        .values = pipeline.frames.values,
                        .element = pipeline.dtype};
  // Far from the end of 64 bits, so that what layout_of adds cannot get there.
  constexpr std::size_t most = std::size_t{1} << 60;
  if (product({shape.rows, shape.width, shape.values, size_of(shape.element)}) > most) return most;
  return SlabRing::slab_bytes_for(layout_of(shape).bytes);
}

}  // namespace

MemoryBounds memory_bounds(const PipelineOptions& pipeline, const LimitOptions& limits) {
  const std::size_t slots = pipeline.batch.slots;
  return {.frames = product({slots, pipeline.stream_frames, pipeline.frames.bytes()}),
          .rows = product({slots, max_ready_rows, sizeof(ReadyRow)}),
          .slabs = product({default_credits + 1, slab_bytes(pipeline)}),
          .results = product({slots, limits.send_buffer})};
}

}  // namespace millrace
