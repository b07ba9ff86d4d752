// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "input/client_format.h"
#include "input/frame_sink.h"

namespace millrace {

// Converts one client's messages into frames of the pipeline: checks the values, decodes them,
// selects or averages channels, converts the rate, and converts to the pipeline's frames.
//
// Rates. The client's audio is a sequence of *input frames* at input_rate(): its own frames, or the
// decoded frames of Opus packets. After n input frames the converter has appended at most
// ⌊n · p / c⌋ frames of the pipeline (c: input_rate(), p: the pipeline's rate), and after drain()
// exactly that many, counted from the drain before. Between drains it lags by the delay of the
// resampler. Without a change of rate there is no lag.
//
// Messages may be split anywhere, also inside a value, except Opus packets. An input frame belongs
// to the message that completes it. Frames do not depend on how the bytes were split.
//
// Confined to one thread. No allocation per message in steady state.
class InputConverter {
 public:
  // Requires: the client has the pipeline's number of values per frame, or chooses one of its
  // channels for a pipeline of one channel; Opus has one or two channels; the rates of audio are
  // whole numbers, and those of features are equal. Throws std::bad_alloc.
  InputConverter(const ClientFormat& from, const FrameType& to);
  ~InputConverter();

  // The rate of input frames: of the client; for Opus that of the decoder.
  double input_rate() const;
  // The most input frames that a message of `bytes` bytes can have.
  std::uint64_t most_input_frames(std::size_t bytes) const;

  enum class Fault : std::uint8_t {
    none,
    not_finite,  // a value is NaN or infinite
    bad_packet,  // the decoder refused the packet, or it is longer than 120 ms
  };
  struct Converted {
    Fault fault = Fault::none;
    std::uint64_t input_frames = 0;  // frames of the message; after a fault, the lost ones
    std::uint64_t appended = 0;      // frames of the pipeline
    std::uint64_t clamped = 0;       // values outside the pipeline's range
  };
  // Converts a message. With a fault nothing of it was appended, and the caller drains next.
  [[nodiscard]] Converted convert(Bytes message, FrameSink& to);

  // The bytes of a message to convert at once, for about 0.1 ms: all of it, or a part of a long
  // one. With NaN or infinity, or if it is a packet, it is all of it.
  std::size_t piece(Bytes message) const {
    return message.size() <= always_whole ? message.size() : piece_of_long(message);
  }

  // Appends the frames that the resampler still holds, so that ⌊n · p / c⌋ frames were appended for
  // the n input frames since the last drain, and begins anew: the next frames are converted like
  // the first of a stream. Part of an input frame stays (drop_partial()). `before` input frames of
  // the stream came before those n: positions are rounded over the whole stream.
  Appended drain(std::uint64_t before, FrameSink& to);

  // The number of input frames that `client_frames` lost Opus packets had: each is as long as the
  // packet before them, or 20 ms. For other formats `client_frames` itself.
  std::uint64_t lost_input_frames(std::uint64_t client_frames) const;

  // True if part of an input frame has been received.
  bool has_partial() const;
  void drop_partial();

 private:
  static constexpr std::size_t always_whole = 1024;  // bytes
  std::size_t piece_of_long(Bytes message) const;

  class Stages;
  std::unique_ptr<Stages> stages_;
};

}  // namespace millrace
