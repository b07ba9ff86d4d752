// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame_type.h"
#include "base/result.h"
#include "training/catalogs/open_catalog.h"
#include "training/catalogs/selection.h"
#include "training/contract/plan_options.h"
#include "training/filling/loader.h"

namespace millrace::training {

// A source of streams.
struct StreamsKey {
  std::string path;      // or the address of a server; empty: an object of the caller
  double frequency = 1;  // how often each of its streams comes per epoch
  bool operator==(const StreamsKey&) const = default;
};

// The keys of a data set, as in Python's Dataset() and in the table `plan` of a server. They need
// no catalog: lengths in `chunk` may be times.
struct DatasetKeys {
  std::vector<StreamsKey> streams;   // empty: the key is missing
  std::optional<std::string> chunk;  // the rule as JSON; nullopt: whole streams
  PlanOptions plan;                  // without `chunk` and `frequencies`

  // The frames; nullopt: as in the source.
  std::optional<double> rate;
  std::optional<std::uint32_t> channels;  // audio
  std::optional<std::uint32_t> dim;       // feature vectors, instead of `channels`
  std::optional<Element> frames;          // nullopt: "auto"
  std::optional<Element> dtype;           // the tensor's; nullopt: like the frames
  bool convert = false;                   // audio of other rates and channels
  bool mapped = false;                    // files are mapped

  std::vector<SplitPart> split;           // sorted by name
  std::optional<std::string> part;        // one name of `split`, or train
  std::optional<std::string> max_stream;  // frames, or a time

  std::vector<CompanionSource> companions;  // empty `from`: an object of the caller

  // rank, world, device, prefetch, threads (by default "auto"), buffers, skip_failed (`on_error`);
  // not dtype
  LoaderSettings loader;
};

// The type of the frames if `frames` is "auto" and a file has more than 16 bits.
inline Element deep_frames(const DatasetKeys& keys) { return keys.dtype.value_or(Element::f32); }

// True if the plan cuts streams at their events: not whole streams, and not the chunks of RETURNN.
inline bool cuts_events(const DatasetKeys& keys) {
  const PlanMode mode = keys.plan.mode;
  return keys.chunk && (mode == PlanMode::stateful || mode == PlanMode::stateless);
}

// The names of all keys, in the order of the documents.
std::vector<std::string_view> dataset_key_names();

// Reads the keys. Null counts as a missing key. The error is for unknown keys, wrong types and
// values, and keys that contradict each other; its message is complete.
//
// `frames` may be "auto".
//
//   {"streams": "speech", "chunk": {"size": "100ms"}, "slots": 32}
//
// `streams` is a path, or a list of paths and pairs [path, frequency]; only audio files in a list
// are one catalog. `chunk` is an object with the keys of a pipeline's `chunk`, or this as a string
// of JSON, or null. `companions` is an object of name and source: a path, or an object with path or
// field, frames_per_entry and entries_per_frame.
Result<DatasetKeys, PlanError> read_dataset_keys(const boost::json::object& keys);

// The streams that are selected of all, for streams of this type.
Result<Selection, PlanError> selection_of(const DatasetKeys& keys, const FrameType& type);
// The options of the plan, for streams of this type.
Result<PlanOptions, PlanError> plan_options(const DatasetKeys& keys, const FrameType& type);
// The settings with the dtype and the columns of the rows, for streams of this type that are cut by
// this rule.
Result<LoaderSettings, PlanError> loader_settings(const DatasetKeys& keys, const FrameType& type,
                                                  const std::optional<ChunkRule>& chunk);

}  // namespace millrace::training
