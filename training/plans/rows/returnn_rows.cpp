// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/returnn_rows.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {
namespace {

std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::uint64_t chunks_of(Returnn backend, const Spec& spec, std::uint64_t frames) {
  const std::uint64_t step = spec.step_of(spec.size), min = spec.min;
  if (frames == 0) return 0;
  if (backend == Returnn::classic) return frames > min ? rounded_up(frames - min, step) : 1;
  const std::uint64_t shortest = std::max<std::uint64_t>(min, 1);
  if (spec.size < shortest || frames < shortest) return 0;
  return (frames - shortest) / step + 1;
}

}  // namespace

RowCounts count_chunks(Returnn backend, const Spec& spec, std::uint64_t frames) {
  const std::uint64_t step = spec.step_of(spec.size), size = spec.size;
  RowCounts counts;
  counts.framed = chunks_of(backend, spec, frames);
  // Whole chunks are first, cut ones end together.
  const std::uint64_t fitting = frames < size ? 0 : (frames - size) / step + 1;
  const std::uint64_t whole = std::min(fitting, counts.framed), cut = counts.framed - whole;
  counts.frames = whole * size;
  if (cut > 0) counts.frames += cut * (frames - whole * step) - step * (cut * (cut - 1) / 2);
  return counts;
}

Row chunk_at(const Spec& spec, std::uint64_t frames, const RowCounts& counts, std::uint64_t j) {
  assert(j < counts.framed);
  Row row;
  row.seq = j;
  row.begin = j * spec.step_of(spec.size);
  row.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.size, frames - row.begin));
  row.flags = flag::reset;
  row.reason = ResetReason::start;
  if (j == 0) row.flags |= flag::start | flag::segment;
  if (j + 1 == counts.framed) row.flags |= flag::last | flag::end;
  return row;
}

}  // namespace millrace::training
