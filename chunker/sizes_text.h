// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chunker/body_size.h"

namespace millrace {

// The key `sizes` of a chunk rule as text: a list of lengths like "80ms+160ms+320ms", or a range
// like "40ms..1s/40ms": from, to, step. Readers of other formats convert their lists and tables to
// this text.

std::string sizes_text(const std::vector<std::string>& lengths);
std::string sizes_text(std::string_view from, std::string_view to, std::string_view step);
// The text in frames.
std::string sizes_text(const SizeList& sizes);

// Parses the text. A list has 2 to 16 lengths of at least one frame, ascending. In a range, `to` is
// more than `from` by a multiple of `step`. The error is the part of a message after `key =
// "text"`.
Result<SizeList, std::string> parse_sizes(std::string_view text, double rate);

}  // namespace millrace
