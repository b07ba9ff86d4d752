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

// What one stream says over ZeroMQ, message by message: its opening, then what its pipe holds, in
// whole frames, from where the stream stands, and no more of them than it has credit for; nothing
// of it while too much waits for the user, so that the service, which gets no more frames, has no
// more to answer. A socket is not in here. Confined to the client's thread.
class OutgoingStream {
 public:
  // `pipe` outlives it.
  OutgoingStream(StreamPipe& pipe, StreamRequest request);

  // The next message, by `encoder`, in which it lives; empty while there is none to be sent. It is
  // the same until sent() is told.
  Bytes next(client_protocol::Encoder& encoder);
  void sent();

  // The service opened it.
  void open(const client_protocol::Ready& ready);
  // So many frames more may be sent.
  void grant(std::uint64_t frames) { credit_ += frames; }
  // Time has passed. Whether nothing was sent since it last had: then next() says that it lives.
  bool beat();
  // It ends here, whatever else was said. Requires: the pipe has ended.
  void cut_short();

  bool is_open() const { return stage_ == Stage::open; }
  bool has_ended() const { return stage_ == Stage::ended; }

 private:
  enum class Stage { closed, opening, open, ended };
  struct Next {  // what the message that next() gave takes away
    std::size_t bytes = 0;
    std::uint64_t frames = 0;
    bool part = false;     // what was left of the frames before
    bool command = false;  // the whole entry
    bool end = false;      // nothing follows it
  };

  Bytes open_message(client_protocol::Encoder& encoder);
  Bytes words(client_protocol::Encoder& encoder);
  bool find_words();
  Bytes frames_message(client_protocol::Encoder& encoder);
  Bytes command_message(client_protocol::Encoder& encoder, const ClientMessage& command);
  Bytes sign_of_life(client_protocol::Encoder& encoder);
  Bytes frames_of(client_protocol::Encoder& encoder, std::string_view bytes);
  std::string_view left() const;
  void pass();

  StreamPipe& pipe_;
  const std::uint64_t number_;
  StreamRequest request_;
  Stage stage_ = Stage::closed;
  std::size_t frame_ = 1;       // bytes of one
  std::uint64_t position_ = 0;  // frames of the client
  std::uint64_t credit_ = 0;    // frames
  std::vector<StreamPipe::Said> said_;
  std::size_t current_ = 0;  // of said_
  std::size_t begun_ = 0;    // bytes of the current frames that were sent
  bool cut_short_ = false;
  bool quiet_ = false;     // since the last beat
  bool sign_due_ = false;  // of life
  std::string part_;       // the beginning of a frame, whose end was not said yet
  Next next_;
};

}  // namespace millrace
