// SPDX-License-Identifier: Apache-2.0
#include "chunker/spec.h"

#include <algorithm>

#include "chunker/lengths.h"

namespace millrace {
namespace {

Result<void, SpecError> check_width(const Spec& spec, std::string_view key, std::uint64_t size) {
  const std::uint64_t around = std::uint64_t{spec.left} + spec.right;
  if (size <= max_window && around + size <= max_window) return {};
  return wrong(key, std::to_string(size),
               "is too long: with left and right it must be at most " + std::to_string(max_window));
}

}  // namespace

Result<void, SpecError> Spec::check() const {
  if (size < 1) return wrong("size", "0", "must be at least 1 frame");
  const std::uint64_t first_size = first_body(size), advanced = step_of(size);
  if (first_size + advanced <= size)
    return wrong("first", std::to_string(first_size),
                 "is too short: first + step must exceed size; size is " + std::to_string(size) +
                     " and step is " + std::to_string(advanced));
  return check_width(*this, first_size > size ? "first" : "size",
                     std::max<std::uint64_t>(first_size, size));
}

Spec ChunkRule::chunker_spec() const {
  Spec cut = spec;
  if (!sizes.sizes.empty()) cut.first = 0;
  return cut;
}

std::uint32_t ChunkRule::first_body(std::uint32_t size) const {
  if (spec.first == 0) return size;
  return sizes.sizes.empty() ? spec.first : size + spec.first - spec.size;
}

bool ChunkRule::allows_body(std::uint64_t body) const {
  if (!spec.check_size(body)) return false;
  if (sizes.sizes.empty()) return spec.left + body + spec.right <= width();
  return sizes.sizes.contains(body) || sizes.sizes.contains(body - first_longer());
}

std::uint32_t ChunkRule::width_of(std::uint32_t size) const {
  return spec.left + std::max(size, first_body(size)) + spec.right;
}

std::uint32_t ChunkRule::shortest_step() const {
  if (sizes.sizes.empty()) return spec.step_of(spec.size);
  const std::uint32_t size = sizes.sizes.smallest();
  return std::min(size, first_body(size));
}

Result<void, SpecError> Spec::check_size(std::uint64_t body) const {
  if (step > 0) return wrong("step", std::to_string(step), "must be 0 if sizes change");
  if (body < 1) return wrong("size", "0", "must be at least 1 frame");
  return check_width(*this, "size", body);
}

}  // namespace millrace
