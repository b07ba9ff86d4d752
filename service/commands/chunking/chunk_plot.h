// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "chunker/row.h"

namespace millrace {

// A picture of how a stream was cut, as SVG: the waveform, the chunks with their borders, the
// markers with their reasons, and where the voice detector found speech. Time runs from left to
// right. Text and lines are plain SVG without scripts. Confined to one thread.
class ChunkPlot {
 public:
  explicit ChunkPlot(const FrameType& frames) : frames_(frames) {}

  // The stream's next frames, whole frames. The waveform shows the first value of each frame.
  void add(Bytes frames);
  // The frames [begin, end) are speech, as far as the voice detector knows.
  void add_speech(std::uint64_t begin, std::uint64_t end);
  // An event that has entered the chunker, and a row, in their order.
  void add(const Event& event);
  void add(const Row& row);

  std::string svg() const;

 private:
  // The extremes of a few frames.
  struct Peak {
    float low = 0, high = 0;
  };
  struct Label {
    std::uint64_t position;
    std::string text;
  };
  struct Chunk {
    std::uint64_t begin, end;
    std::uint64_t seq;
  };

  double seconds(std::uint64_t position) const {
    return static_cast<double>(position) / frames_.rate;
  }
  void draw_waveform(std::string& out) const;
  void draw_speech(std::string& out) const;
  void draw_chunks(std::string& out) const;
  void draw_labels(std::string& out) const;
  void draw_axis(std::string& out) const;
  double x(std::uint64_t position) const;

  const FrameType frames_;
  std::vector<Peak> peaks_;
  std::uint64_t position_ = 0;
  Cause closing_ = Cause::client;  // why the current segment ends, once known
  Event::Kind closing_kind_ = Event::Kind::end;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> speech_;
  std::vector<Chunk> chunks_;
  std::vector<Label> labels_;
};

}  // namespace millrace
