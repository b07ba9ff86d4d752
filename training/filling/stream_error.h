// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "training/catalog.h"

namespace millrace::training {

// A stream that could not be delivered, and the step that needs it.
struct DataError {
  ReadError error;
  std::uint64_t stream = 0;
  std::string name;
  std::uint64_t epoch = 0, step = 0;
};

// The text as one printable line of about 4000 bytes at most, which fits into a Refused. A byte
// that is not UTF-8 is written as \xf6.
std::string printable_line(std::string_view text);

// A JSON object with stream, name, message, fault, epoch and step. A byte of the name or the
// message that is not UTF-8 is written as by append_file_name().
std::string to_json(const DataError& error);

// A place in the sequence of batches.
struct PlanPosition {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  bool operator==(const PlanPosition&) const = default;
};

}  // namespace millrace::training
