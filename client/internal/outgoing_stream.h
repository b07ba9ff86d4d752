// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "client/internal/stream_pipe.h"
#include "schemas/client_codec.h"
#include "schemas/stream_request.h"

namespace millrace {

// The messages that one stream sends over ZeroMQ: Open, then the input queued in its pipe. Frames
// are sent whole, with their position, and only as far as the stream has credit. A packet is a
// message and counts as one frame. While the pipe is held up, no input is sent: without further
// frames, the service has nothing further to answer.
// Does no I/O. Confined to the client's thread.
class OutgoingStream {
 public:
  // `pipe` and `token`, which may be empty, outlive it.
  OutgoingStream(StreamPipe& pipe, StreamRequest request, const std::string& token);

  // The next message, valid until `encoder` is used again; empty if none can be sent now. Returns
  // the same message until sent() is called.
  Bytes next(client_protocol::Encoder& encoder);
  // The message from next() was sent.
  void sent();

  // The service has opened the stream.
  void open(const client_protocol::Ready& ready);
  // Adds credit for `frames` frames.
  void grant(std::uint64_t frames) { credit_ += frames; }
  // Called once per keepalive interval. True if the stream is open and nothing was sent since the
  // last call: next() then returns at least a keepalive.
  bool check_idle();
  // Drops the queued input; the next message is End, or none if the stream was not requested yet.
  // Requires: the pipe has ended.
  void cut_short();

  bool is_open() const { return stage_ == Stage::open; }
  bool has_ended() const { return stage_ == Stage::ended; }

 private:
  enum class Stage { closed, opening, open, ended };
  struct Next {             // the queued data that the message from next() uses
    std::size_t bytes = 0;  // bytes of the current entry
    std::uint64_t frames = 0;
    bool partial = false;  // the bytes in partial_frame_
    bool command = false;  // the current entry, a command
    bool end = false;      // the message is the last one
  };

  Bytes open_message(client_protocol::Encoder& encoder);
  Bytes queued_message(client_protocol::Encoder& encoder);
  bool fetch_queued();
  Bytes frames_message(client_protocol::Encoder& encoder);
  Bytes command_message(client_protocol::Encoder& encoder, const ClientMessage& command);
  Bytes keepalive_message(client_protocol::Encoder& encoder);
  Bytes frames_of(client_protocol::Encoder& encoder, std::string_view bytes);
  std::string_view remaining() const;
  void finish_entry();

  StreamPipe& pipe_;
  const std::uint64_t number_;
  StreamRequest request_;
  const std::string& token_;
  Stage stage_ = Stage::closed;
  std::size_t frame_bytes_ = 1;
  std::uint64_t position_ = 0;  // frames of the client; for Opus, packets
  std::uint64_t credit_ = 0;    // frames
  std::vector<StreamPipe::Queued> queued_;
  std::size_t current_ = 0;  // index in queued_
  std::size_t offset_ = 0;   // bytes of the current entry that were sent or are in partial_frame_
  bool cut_short_ = false;
  bool idle_ = false;  // nothing was sent since the last check_idle()
  bool keepalive_due_ = false;
  std::string partial_frame_;  // the first bytes of a frame whose rest is not queued yet
  Next next_;
};

}  // namespace millrace
