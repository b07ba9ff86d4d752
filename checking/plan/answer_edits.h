// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/answer.h"

namespace millrace::checking {

struct AnswerDifference {
  std::size_t edits = 0;  // the edit distance of texts
  double numbers = 0;     // the largest difference of two numbers, as a tolerance
};

// The difference of two answers to the same row: the edit distance of their texts, and that of
// numbers within the tolerance; nullopt if they differ in anything else, or by more than `most`
// edits. A text is that of an answer or of a string in JSON. An answer
// that is a text equals the JSON string with this text, and an error equals any other one.
//
// Without a tolerance (0), the answers must be the same bytes. With one:
//
// - numbers in JSON may differ by `tolerance`, or by this part of the larger one;
// - bytes are numbers: of 32 bits (float) if nearly all of them are plausible ones, otherwise of 16
//   bits (samples, from -1 to 1). NaN equals NaN.
std::optional<AnswerDifference> answer_difference(const Answer& a, const Answer& b,
                                                  double tolerance, std::size_t most);

// The number of characters of the texts in an answer.
std::size_t text_length(const Answer& answer);

// The edit distance of two texts in UTF-8: the least number of characters that must be inserted,
// removed or replaced. If it is above `most`, the result is any number above `most`. Takes a time
// of O(length * most).
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

}  // namespace millrace::checking
