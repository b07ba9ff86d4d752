// SPDX-License-Identifier: Apache-2.0
#include "chunker/body_size.h"

#include <algorithm>

#include "chunker/mix.h"

namespace millrace {
namespace {

// 64-bit FNV-1a
constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

bool SizeList::contains(std::uint64_t size) const {
  if (!is_range()) return std::ranges::find(sizes_, size) != sizes_.end();
  return size >= smallest() && size <= largest() && (size - from_) % step_ == 0;
}

std::uint64_t draw_key(std::uint64_t seed, std::string_view stream) {
  return mix(seed ^ hash(stream));
}

std::uint64_t drawn_number(std::uint64_t key, std::uint64_t index) { return mix(key + index); }

SizeDraws::SizeDraws(const SizeRule& rule, std::string_view stream)
    : rule_(&rule), key_(draw_key(rule.seed, stream)) {}

std::uint32_t SizeDraws::operator[](std::uint64_t row) const {
  const std::uint64_t h = drawn_number(key_, rule_->per == SizeRule::Per::stream ? 0 : row);
  using Wide = unsigned __int128;
  const SizeList& sizes = rule_->sizes;
  return sizes[static_cast<std::size_t>((Wide{sizes.size()} * h) >> 64)];
}

std::uint32_t drawn_size(const SizeRule& rule, std::string_view stream, std::uint64_t row) {
  return SizeDraws(rule, stream)[row];
}

}  // namespace millrace
