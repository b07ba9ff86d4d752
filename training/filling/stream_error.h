// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::training {

// A stream that could not be delivered, and the step that needs it.
struct DataError {
  ReadError error;
  std::uint64_t stream = 0;
  std::string name;
  std::uint64_t epoch = 0, step = 0;
  // If it is skipped: the copy of the stream, and as FailedStream.
  std::uint32_t copy = 0;
  std::uint64_t frame = 0, good = 0;
};

// Where streams have failed in this epoch and the one before. A stream that could be read again in
// the middle of an epoch would come back without the states before.
struct FailedStream {
  std::uint64_t frame = 0;  // the row that failed begins there
  std::uint64_t good = 0;   // the frames before it are good
  ReadError error{};
};
using FailedStreams = std::map<StreamCopy, FailedStream>;

// Removes those of epochs before the last one. Batches of the last epoch may be dropped, and filled
// again.
void forget_old(FailedStreams& streams, std::uint64_t epoch);
// Adds the streams that fail in a batch, and forgets old ones.
void add_failed(FailedStreams& streams, const std::vector<DataError>& failed);

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
