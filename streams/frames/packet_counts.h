// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ring.h"

namespace millrace {

// How many packets of a stream came before each of its input frames: a packet is one frame of the
// client and many input frames. Remembers the packets since forget(). Packets of equal length are
// one run, so that it is small. Confined to one thread.
class PacketCounts {
 public:
  PacketCounts(std::uint64_t packets, std::uint64_t input_frames)
      : packets_(packets), end_(input_frames) {}

  void add(std::uint64_t packets, std::uint64_t input_frames) {
    if (packets == 0) return;
    const std::uint64_t length = input_frames / packets;
    if (runs_.empty() || runs_.back().length != length)
      runs_.push_back({.packet = packets_, .begin = end_, .length = length});
    packets_ += packets;
    end_ += input_frames;
  }
  std::uint64_t packets() const { return packets_; }  // so far

  struct Packet {
    std::uint64_t number = 0;  // packets before it
    std::uint64_t begin = 0;   // input frames before it
  };
  // The packet that has this input frame, or the next one if it has not arrived. Requires: it is
  // not forgotten.
  Packet at(std::uint64_t input_frame) const {
    if (input_frame >= end_) return {packets_, end_};
    std::size_t i = runs_.size();
    while (i > 1 && runs_[i - 1].begin > input_frame) --i;
    const Run& run = runs_[i - 1];
    if (run.length == 0) return {run.packet, run.begin};
    const std::uint64_t before = (input_frame - run.begin) / run.length;
    return {run.packet + before, run.begin + before * run.length};
  }
  // Nothing before this input frame is asked for any more.
  void forget(std::uint64_t input_frame) {
    while (runs_.size() > 1 && runs_[1].begin <= input_frame) runs_.pop_front();
  }

 private:
  struct Run {
    std::uint64_t packet = 0;
    std::uint64_t begin = 0;
    std::uint64_t length = 0;  // input frames of each packet
  };

  std::uint64_t packets_;
  std::uint64_t end_;
  Ring<Run> runs_;
};

}  // namespace millrace
