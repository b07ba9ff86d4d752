// SPDX-License-Identifier: Apache-2.0
#include "chunker/sizes_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "chunker/lengths.h"

namespace millrace {
namespace {

constexpr std::string_view between = "+", range_to = "..", range_step = "/";
constexpr std::string_view forms =
    "must be 2 to 16 lengths of at least 1 frame in ascending order, or a range";

// The length in frames. The error quotes it, because it is only part of the value.
Result<std::uint32_t, std::string> one_length(std::string_view text, double rate) {
  const auto frames = parse_length(text, rate);
  if (!frames) return "contains \"" + std::string(text) + "\", which " + frames.error();
  return *frames;
}

Result<SizeList, std::string> parse_list(std::string_view text, double rate) {
  std::vector<std::uint32_t> sizes;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find(between), text.size());
    const auto frames = one_length(text.substr(0, end), rate);
    if (!frames) return frames.error();
    sizes.push_back(*frames);
    more = end < text.size() && sizes.size() <= most_sizes;
    text.remove_prefix(std::min(end + between.size(), text.size()));
  }
  const bool ascending =
      std::ranges::adjacent_find(sizes, std::ranges::greater_equal()) == sizes.end();
  if (sizes.size() < 2 || sizes.size() > most_sizes || !ascending || sizes.front() < 1)
    return std::string(forms);
  return SizeList(std::move(sizes));
}

Result<SizeList, std::string> parse_range(std::string_view from_text, std::string_view rest,
                                          double rate) {
  const std::size_t slash = rest.find(range_step);
  if (slash == rest.npos) return std::string(forms);
  const auto from = one_length(from_text, rate), to = one_length(rest.substr(0, slash), rate),
             step = one_length(rest.substr(slash + range_step.size()), rate);
  for (const auto& length : {from, to, step})
    if (!length) return length.error();
  if (*from < 1 || *step < 1 || *to <= *from || (*to - *from) % *step != 0)
    return std::string(
        "must be a range whose end exceeds its start, by a multiple of its step; "
        "each is at least 1 frame");
  return SizeList(*from, *to, *step);
}

}  // namespace

std::string sizes_text(const std::vector<std::string>& lengths) {
  std::string text;
  for (const std::string& length : lengths)
    text.append(&length == &lengths.front() ? "" : between).append(length);
  return text;
}

std::string sizes_text(std::string_view from, std::string_view to, std::string_view step) {
  return std::string(from).append(range_to).append(to).append(range_step).append(step);
}

std::string sizes_text(const SizeList& sizes) {
  if (sizes.is_range())
    return sizes_text(std::to_string(sizes.smallest()), std::to_string(sizes.largest()),
                      std::to_string(sizes.step()));
  std::vector<std::string> lengths;
  for (std::size_t i = 0; i < sizes.size(); ++i) lengths.push_back(std::to_string(sizes[i]));
  return sizes_text(lengths);
}

Result<SizeList, std::string> parse_sizes(std::string_view text, double rate) {
  if (text.empty()) return std::string(forms);
  const std::size_t dots = text.find(range_to);
  if (dots == text.npos) return parse_list(text, rate);
  return parse_range(text.substr(0, dots), text.substr(dots + range_to.size()), rate);
}

}  // namespace millrace
