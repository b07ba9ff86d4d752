// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/frame_type.h"
#include "base/ids.h"
#include "base/result.h"
#include "recording/format/mcap.h"

namespace millrace::recording {

// The batches of the pipeline that a stream was recorded from, as its workers received them.
struct RecordedBatches {
  Element dtype = Element::s16;              // type of the values
  std::uint32_t slots = 0;                   // at least 1
  std::uint32_t rows = 0;                    // most rows, at least 1
  std::vector<std::uint32_t> widths{};       // that batches may have, ascending; not empty
  std::vector<std::uint32_t> row_buckets{};  // likewise, the last is `rows`; empty: any number
  bool stateful = true;                      // at most one row with frames per stream in a batch
  bool operator==(const RecordedBatches&) const = default;
};

// The key of a stream that may survive its connection. If it was lost and opened anew, it has
// several recordings, perhaps in several directories: all have this key, in the order of the
// epochs.
struct ResumableKey {
  StreamKey stream{};
  std::uint32_t epoch = 0;  // number of the connection that opened this recording
  bool operator==(const ResumableKey&) const = default;
};

// 32 digits.
std::string to_hex(const StreamKey& key);

// All that is known of a stream when it opens. Written to every recording file that has a part of
// the stream, as the metadata of its MCAP channel.
struct StreamMeta {
  std::uint64_t number = 0;  // never used twice in a directory
  std::string name{};        // chosen by the client: never part of a path
  std::string pipeline{};
  std::string rule{};                        // the chunk rule: JSON of chunker/rule_json.h
  FrameType frames{};                        // type of the recorded frames
  std::optional<RecordedBatches> batches{};  // nullopt: recorded by an earlier version
  std::string options{};                     // the client's: a JSON object, or empty
  std::string client{};          // the client's format: {"format":"mulaw","rate":8000,"channels":1}
  std::int64_t opened_wall = 0;  // nanoseconds since 1970
  std::int64_t opened_steady = 0;           // the same instant by the clock of RecordedEvent::at
  std::optional<ResumableKey> resumable{};  // nullopt: the stream ends with its connection
  bool operator==(const StreamMeta&) const = default;
};

// The metadata of the channel, as docs/recording_format.md lists them. Empty options and an empty
// client format are left out.
std::map<std::string, std::string> to_metadata(const StreamMeta& meta);
// Other keys are ignored. The error is the key that is absent or has a value that is not valid.
Result<StreamMeta, std::string> meta_from(const mcap::TextMap& metadata);

}  // namespace millrace::recording
