// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/answer.h"

namespace millrace::python {

// How many answers a batch accepts: one for each of its `rows`, or `rows` + `padding`. The last
// `padding` answers are for padding rows, and are dropped.
struct AnswerCount {
  std::size_t rows;
  std::size_t padding;
  const char* answer;  // noun in error messages: "answer"
  const char* row;     // noun for a row: "marker row"
};

// Returns an answer for each row. `given` is a sequence, or an array (an object with tolist())
// whose first axis is the rows. For None, and for an empty `given`, the result is empty.
//
// A str is text, bytes are bytes, an exception is an error, None is Kind::none, and an object of
// type Pending is Kind::pending. Any other value is JSON: `encode` makes its text. A value without
// a JSON text (NaN, a lone surrogate) is an error of its row, and a line is added to `unfit`: "the
// answer to row 2 cannot be sent: ValueError:
// ...".
//
// Raises ValueError for a wrong count, TypeError if `given` is neither a sequence nor an array, and
// the exceptions of `encode` other than ValueError.
//
// Requires: the GIL.
std::vector<Answer> answers_from(nanobind::handle given, AnswerCount count, nanobind::handle encode,
                                 std::vector<std::string>& unfit);

// One value as in answers_from(). Raises ValueError for a value without a JSON text, and the
// exceptions of `encode`.
//
// Requires: the GIL.
Answer answer_from(nanobind::handle value, nanobind::handle encode);

// The type of `millrace.pending`, which stands for an answer that follows.
struct Pending {};

// Sets which answers end the segments of their rows. `given` is a mask of the rows: a sequence or
// an array of bools. `answers` are those of answers_from(); if it is empty, it becomes answers
// without other content. None changes nothing.
//
// Raises ValueError for a wrong count, and TypeError if `given` is neither a sequence nor an array,
// or has an element that is not a bool, 0 or 1.
//
// Requires: the GIL.
void set_endpoints(std::vector<Answer>& answers, nanobind::handle given, AnswerCount count);

// Type and text of an exception, for an error of a row: cut to Worker::longest_error bytes.
//
// Requires: the GIL.
std::string error_text(nanobind::handle exception);

}  // namespace millrace::python
