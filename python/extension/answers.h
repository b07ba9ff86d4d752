// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/answer.h"

namespace millrace::python {

// What a model may say to so many rows. Answers of padding rows, behind those of `rows` and no more
// than `padding`, are dropped.
struct AnswerCount {
  std::size_t rows;
  std::size_t padding;
  const char* answer;  // what one of them is called in errors: "answer"
  const char* row;     // and what it answers: "marker row"
};

// An answer for each row, or none at all where `given` is None or empty: the elements of a
// sequence, or of an array (whatever has tolist()) along its first axis. None is no answer, str
// text, bytes bytes, an exception an error; all else is JSON, of which `encode` makes the text.
// Raises ValueError where the count is wrong, and what `encode` raises but ValueError: where a
// value cannot be said (NaN, a lone surrogate), that row's answer is an error.
//
// Requires: the GIL.
std::vector<Answer> answers_from(nanobind::handle given, AnswerCount count,
                                 nanobind::handle encode);

// Type and text of an exception, as an error of a row says it: cut to Worker::longest_error.
// Requires: the GIL.
std::string words_of(nanobind::handle exception);

}  // namespace millrace::python
