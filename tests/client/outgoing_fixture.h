// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client_error.h"
#include "client/internal/outgoing_stream.h"
#include "tests/client/wire_words.h"

namespace millrace::test {

using Words = std::vector<std::string>;

// Stream 3 over ZeroMQ, and the messages that it sends.
struct OutgoingFixture {
  OutgoingFixture() = default;
  explicit OutgoingFixture(StreamRequest request)
      : outgoing(pipe, state, std::move(request), token) {}
  explicit OutgoingFixture(StreamPipe::Input input) : pipe{3, bounds, changes, [] {}, input} {}

  void open(std::uint64_t frames = 0, std::uint32_t frame_bytes = 2) {
    (void)sent_messages();
    outgoing.open({.stream = 3,
                   .id = "mic",
                   .pipeline = "default",
                   .frames = frames,
                   .frame_bytes = frame_bytes});
  }
  bool queue(std::string_view frames) {
    return pipe.queue({reinterpret_cast<const std::byte*>(frames.data()), frames.size()},
                      Time::min());
  }
  bool queue(const ClientMessage& command) { return pipe.queue(command, Time::min()); }

  // Descriptions of all messages that can be sent now.
  std::vector<std::string> sent_messages() {
    std::vector<std::string> words;
    for (;;) {
      const Bytes message = outgoing.next(encoder, now);
      if (message.empty()) return words;
      words.push_back(words_of(*decoder.to_service(message)));
      outgoing.sent(now);
    }
  }

  Changes changes;
  static constexpr StreamPipe::Bounds bounds{.unsent = 1 << 20, .untaken = 128};
  StreamPipe pipe{3, bounds, changes, [] {}};
  std::string token;
  ResumingStream state{pipe.has_packets(), ""};
  OutgoingStream outgoing{pipe, state, {}, token};
  Time now{std::chrono::hours(1)};
  client_protocol::Encoder encoder;
  client_protocol::Decoder decoder{1 << 20};
};

}  // namespace millrace::test
