// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "input/endpoint_rule.h"

namespace millrace {

// Decides for each piece of 10 ms of a stream of audio whether it contains speech. Uses the voice
// detector of WebRTC, which gets the mean of the channels as s16. After speech, that detector
// reports speech for up to 150 ms more.
//
// Decisions depend only on the frames since the start or restart(), not on how they were split.
// Confined to one thread. add() does not allocate. Its functions are virtual so that the Python
// package, which has no such library and no such streams, links without it.
class VoiceDetector {
 public:
  // True for 8, 16, 32 and 48 kHz.
  static bool has_rate(double rate);
  // Upper bound of the memory of one detector at this rate. Requires: has_rate(rate).
  static std::size_t bytes(double rate);

  // `sensitivity` is 0 to 3. The higher, the more sounds are speech. Throws std::bad_alloc.
  // Requires: has_rate(frames.rate), and audio.
  VoiceDetector(const FrameType& frames, std::uint32_t sensitivity);
  virtual ~VoiceDetector();

  // The detector for this rule; null if its endpoints are not by voice.
  static std::unique_ptr<VoiceDetector> of(const std::optional<EndpointRule>& rule,
                                           const FrameType& frames);

  // The number of frames to the end of the current piece, at least 1.
  virtual std::size_t missing() const;
  // The number of frames in a piece.
  virtual std::size_t piece() const;
  // Adds whole frames, at most missing(). At the end of a piece returns whether it contains speech.
  virtual std::optional<bool> add(Bytes frames);

  // Drops the frames of the current piece and begins anew, like a new detector. Above 16 kHz it
  // allocates, and may throw std::bad_alloc.
  virtual void restart();

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace millrace
