// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "load/streams/schedule.h"
#include "load/streams/sent_audio.h"

namespace millrace::load {

// The frames of all packets, a function of the client and the number of the packet: lost,
// duplicated, reordered and damaged frames are detected by their values. With noise of s16, the
// first 8 bytes of a packet are its due time (to_wire, little-endian), for receivers that have no
// schedule. If clients send another format or rate than plain(), values cannot be compared; counts
// and positions can, because a packet is a whole number of frames at both rates.
//
// The schedule must outlive it. Immutable; thread-safe once the schedule has started.
class Content {
 public:
  // Noise. `type` is that of the pipeline's frames.
  Content(const Schedule& schedule, const FrameType& type) : Content(schedule, type, plain(type)) {}
  Content(const Schedule& schedule, const FrameType& type, const SentAudio& sent);
  // Given frames of s16 with this rate, at least one packet, which repeat at their end. Clients
  // begin at different ones.
  Content(const Schedule& schedule, const FrameType& type, std::vector<std::byte> frames,
          double rate);

  // Frames of the pipeline.
  std::size_t packet_frames() const { return packet_frames_; }
  // Bytes that a client sends.
  std::size_t packet_bytes() const { return packet_bytes_; }

  // Writes the packet with number `packet` of the client. Requires: bytes.size() == packet_bytes().
  void write(std::uint32_t client, std::uint64_t packet, MutableBytes bytes) const;

  // True if a window of the stream that began with packet `first` of the client has these values.
  // `begin` is the position of the window in its stream. `element` is the type of `values`. True
  // for values that it cannot compare: all except those of the sent type, and f32 for sent s16.
  bool matches(std::uint32_t client, std::uint64_t first, std::uint64_t begin, Bytes values,
               Element element) const;

 private:
  Bytes frames_of(std::uint32_t client, std::uint64_t packet) const;
  bool matches_packet(std::uint32_t client, std::uint64_t packet, std::size_t offset, Bytes values,
                      Element element) const;

  const Schedule& schedule_;
  const bool comparable_;  // the pipeline's values are those that were sent
  const Element element_;  // element of the sent values
  const std::size_t frame_bytes_;
  const std::size_t packet_frames_;  // frames of the pipeline
  const std::size_t sent_frames_;    // frames of the client
  const std::size_t packet_bytes_;
  const bool stamped_;
  const bool noise_;
  const std::optional<std::byte> first_byte_{};  // first byte of an Opus packet
  const std::size_t step_bytes_;                 // packets begin at multiples of it in frames_
  std::vector<std::byte> frames_;  // with a copy of the first packet after the last frame
  std::size_t period_;             // steps after which the content repeats
};

}  // namespace millrace::load
