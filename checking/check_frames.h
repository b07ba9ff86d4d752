// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/frame_type.h"
#include "base/result.h"
#include "checking/plan/checked_stream.h"
#include "checking/plan/draws.h"

namespace millrace::checking {

// The frames of the streams of a check are those of at most this many streams, of each at most
// the first minute.
inline constexpr std::uint64_t most_streams = 32;

// Generated streams: of audio tones and noise that are louder and quieter, with silences; of
// features noise that changes slowly. The streams have different lengths, of about 6 to 14 bodies
// of `body` frames; a third of those of audio have a pause of 1 to 2 s, which ends segments.
std::vector<StreamFrames> generated_frames(std::uint32_t streams, const FrameType& type,
                                           std::uint32_t body, Draws& draws);

// The streams of a folder of audio files, a manifest, or recordings of the pipeline. The fields of
// a manifest are the options of its streams. If there are fewer than `streams`, some of them come
// several times, from other places on. The error is one line: the path cannot be used, or its
// streams have another type. Throws std::system_error if the disk fails.
Result<std::vector<StreamFrames>, std::string> frames_at(const std::string& path,
                                                         const std::string& pipeline,
                                                         std::uint32_t streams,
                                                         const FrameType& type, Draws& draws);

}  // namespace millrace::checking
