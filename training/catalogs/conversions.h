// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/frame_type.h"
#include "training/catalogs/audio_catalog.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The files of a catalog that are converted: those of another rate or other channels than its type.

inline bool is_converted(const IndexedStream& stream, const FrameType& type) {
  return stream.rate != type.rate || stream.channels != type.values;
}

// The length of a stream in frames of the catalog.
std::uint64_t frames_of(const IndexedStream& stream, const FrameType& type);

// The digest of the streams of an index and of what they are converted to. Without conversions, it
// depends on the digest of the index and the type alone.
std::uint64_t digest_of(const Index& index, const FrameType& type);

// Sentences that name the files that are converted (the first 3, and the number of all), and those
// that cannot be. Empty: there are none.
struct Conversions {
  std::string text, fault;
};
Conversions conversions_of(const AudioCatalog& catalog);

}  // namespace millrace::training
