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
#include "cutting/segment_endpoints.h"

namespace millrace {

// A picture of how a stream was cut, as SVG: the waveform, the chunks with their borders, the
// markers with their reasons, and where the voice detector found speech. Time runs from left to
// right. Text and lines are plain SVG without scripts. Confined to one thread.
class ChunkPlot {
 public:
  explicit ChunkPlot(const FrameType& frames) : frames_(frames) {}

  // The stream's next frames, whole frames. The waveform shows the first value of each frame.
  void add(Bytes frames);
  // An event that has entered the chunker, with the source of endpoints, which created it or
  // received its frames; null if the stream has none.
  void add(const Event& event, const SegmentEndpoints* endpoints);
  // A row that the event has cut.
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
  void add_piece(bool speech);
  void draw_waveform(std::string& out) const;
  void draw_speech(std::string& out) const;
  void draw_chunks(std::string& out) const;
  void draw_labels(std::string& out) const;
  void draw_axis(std::string& out) const;
  double x(std::uint64_t position) const;

  const FrameType frames_;
  std::vector<Peak> peaks_;
  std::uint64_t position_ = 0;
  std::uint64_t cut_ = 0;    // position after the frames of the events so far
  std::uint64_t piece_ = 0;  // where the voice detector's current piece begins
  std::string closing_;      // why the current segment ends, once known
  std::vector<std::pair<std::uint64_t, std::uint64_t>> speech_;
  std::vector<Chunk> chunks_;
  std::vector<Label> labels_;
};

}  // namespace millrace
