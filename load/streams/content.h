// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// The frames of all packets, a function of the client and the number of the packet: lost,
// duplicated, reordered and damaged frames are detected by their values. With noise of s16, the
// first 8 bytes of a packet are its due time (to_wire, little-endian), for receivers that have no
// schedule.
//
// The schedule must outlive it. Immutable; thread-safe once the schedule has started.
class Content {
 public:
  // Noise: s16 for audio, f32 for features.
  Content(const Schedule& schedule, const FrameType& type);
  // Given frames, at least one packet, which repeat at their end. Clients begin at different ones.
  Content(const Schedule& schedule, const FrameType& type, std::vector<std::byte> frames);

  std::size_t packet_frames() const { return packet_frames_; }
  std::size_t packet_bytes() const { return packet_frames_ * frame_bytes_; }

  // Writes the packet with number `packet` of the client. Requires: bytes.size() == packet_bytes().
  void write(std::uint32_t client, std::uint64_t packet, MutableBytes bytes) const;

  // True if a window of the stream that began with packet `first` of the client has these values.
  // `begin` is the position of the window in its stream. `element` is the type of `values`. True
  // for types that it cannot compare: all except the sent type, and f32 for sent s16.
  bool matches(std::uint32_t client, std::uint64_t first, std::uint64_t begin, Bytes values,
               Element element) const;

 private:
  Bytes frames_of(std::uint32_t client, std::uint64_t packet) const;
  bool matches_packet(std::uint32_t client, std::uint64_t packet, std::size_t offset, Bytes values,
                      Element element) const;

  const Schedule& schedule_;
  const Element element_;
  const std::size_t frame_bytes_;
  const std::size_t packet_frames_;
  const bool stamped_;
  const bool noise_;
  const std::size_t step_bytes_;   // packets begin at multiples of it in frames_
  std::vector<std::byte> frames_;  // with a copy of the first packet after the last frame
  std::size_t period_;             // steps after which the content repeats
};

}  // namespace millrace::load
