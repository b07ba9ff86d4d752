// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/frame_output.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

// Output to a socket that accepts at most `most` bytes at a time.
struct OutputFixture {
  std::string take(std::size_t most = std::string::npos) {
    std::string taken;
    for (const auto& buffer : output.unwritten()) {
      const std::string_view bytes(static_cast<const char*>(buffer.data()), buffer.size());
      taken += bytes.substr(0, most - taken.size());
    }
    goes_on = output.written(taken.size());
    return taken;
  }

  FrameOutput output{Role::server};
  bool goes_on = false;
};

const std::string long_message(FrameOutput::most_copied + 1, 'x');
const std::string long_head = "\x82\x7e\x80\1";

}  // namespace

TEST_CASE_METHOD(OutputFixture, "consecutive messages are written at once") {
  output.add(Opcode::text, "one");
  output.add(Opcode::binary, "two");
  output.add(Opcode::ping, "");
  CHECK(take() == std::string("\x81\3one\x82\3two\x89\0", 12));
  CHECK(goes_on);
  CHECK(output.empty());
}

TEST_CASE_METHOD(OutputFixture,
                 "the rest of a message is written later, from the first unwritten byte") {
  output.add(Opcode::text, "one");
  CHECK(take(2) == "\x81\3");
  CHECK_FALSE(goes_on);
  CHECK(take(0).empty());
  CHECK(take() == "one");
  CHECK(goes_on);
}

TEST_CASE_METHOD(OutputFixture, "a long message is written without a copy") {
  output.add(Opcode::text, "one");
  output.add(Opcode::binary, long_message);
  const auto buffers = output.unwritten();
  CHECK(buffers[1].data() == long_message.data());
  CHECK(take(20).size() == 20);
  CHECK(output.unwritten()[1].data() == long_message.data() + 11);
  CHECK(take().size() == long_message.size() - 11);
  CHECK(output.empty());
}

TEST_CASE_METHOD(OutputFixture, "while the peer takes the answers, each ping is answered") {
  output.pong("a");
  output.pong("b");
  CHECK(take() == "\x8a\1a\x8a\1b");
}

TEST_CASE_METHOD(OutputFixture, "while output waits, only the last ping is answered") {
  output.add(Opcode::binary, long_message);
  CHECK(take(3) == long_head.substr(0, 3));
  output.pong("a");
  output.pong("b");
  CHECK(take() == long_head.substr(3) + long_message);
  CHECK(goes_on);
  CHECK_FALSE(output.empty());
  CHECK(take() == "\x8a\1b");
  CHECK(output.empty());
}

TEST_CASE_METHOD(OutputFixture, "a close is sent after all waiting output, and nothing after it") {
  output.add(Opcode::binary, long_message);
  take(3);
  output.pong("a");
  output.close(1000, "bye");
  output.pong("b");
  output.close(1001, "");
  output.add(Opcode::ping, "");
  take();
  CHECK(take() ==
        "\x8a\1a\x88\5\3\xe8"
        "bye");
  CHECK(output.empty());
}

TEST_CASE_METHOD(OutputFixture, "a close reason is cut to the size of a control frame") {
  output.close(1000, std::string(500, 'x'));
  CHECK(take() == "\x88\x7a\3\xe8" + std::string(120, 'x'));
}

TEST_CASE_METHOD(OutputFixture, "dropped output is empty, and the next message is written") {
  output.add(Opcode::binary, long_message);
  take(3);
  output.pong("a");
  output.drop();
  CHECK(output.empty());
  output.add(Opcode::text, "one");
  CHECK(take() == "\x81\3one");
}

TEST_CASE("a client masks each frame with a different key") {
  FrameOutput output(Role::client);
  output.add(Opcode::text, "one");
  output.add(Opcode::text, "one");
  const auto buffer = output.unwritten()[0];
  const std::string frames(static_cast<const char*>(buffer.data()), buffer.size());
  REQUIRE(frames.size() == 18);
  CHECK(frames.substr(2, 4) != frames.substr(11, 4));
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}}) {
    CHECK(frames.substr(at, 2) == "\x81\x83");
    std::string payload = frames.substr(at + 6, 3);
    for (std::size_t i = 0; i < 3; ++i) payload[i] ^= frames[at + 2 + i];
    CHECK(payload == "one");
  }
}
