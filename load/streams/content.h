// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// What the packets hold. Whoever knows the place and the number of a packet knows its frames, so
// that loss, doubling, disorder and damage show by content. Where it is noise of s16, the first 8
// bytes of a packet are the instant at which it was due (to_wire, little-endian), for receivers
// that know nothing else.
//
// Immutable; the schedule outlives it. For any thread once that has started.
class Content {
 public:
  // Noise of the pipeline's kind of frames: s16 of audio, f32 of features.
  Content(const Schedule& schedule, const FrameType& type);
  // Frames of somebody's, at least one packet of them, from the front again at their end; places
  // begin at different ones.
  Content(const Schedule& schedule, const FrameType& type, std::vector<std::byte> frames);

  std::size_t packet_frames() const { return packet_frames_; }
  std::size_t packet_bytes() const { return packet_frames_ * frame_bytes_; }

  // Requires: packet.size() == packet_bytes().
  void write(std::uint32_t place, std::uint64_t packet, MutableBytes bytes) const;

  // Whether a window of the stream that began with packet `first` of the place has these values.
  // `begin` is its first frame, counted from the stream's. `element` is the window's: s16, or
  // f32; what it cannot compare is right.
  bool matches(std::uint32_t place, std::uint64_t first, std::uint64_t begin, Bytes values,
               Element element) const;

 private:
  Bytes frames_of(std::uint32_t place, std::uint64_t packet) const;
  bool matches_packet(std::uint32_t place, std::uint64_t packet, std::size_t offset, Bytes values,
                      Element element) const;

  const Schedule& schedule_;
  const Element element_;
  const std::size_t frame_bytes_;
  const std::size_t packet_frames_;
  const bool stamped_;
  const bool noise_;
  const std::size_t step_bytes_;   // packets begin at a multiple of it
  std::vector<std::byte> frames_;  // the first packet follows the last frame once more
  std::size_t period_;             // of frames_, in steps
};

}  // namespace millrace::load
