// SPDX-License-Identifier: Apache-2.0
#include "client/internal/outgoing_stream.h"

#include <catch2/catch.hpp>

#include "client/client_error.h"
#include "tests/client/wire_words.h"

using namespace millrace;
namespace cp = client_protocol;

namespace {

constexpr Time at_once = Time::min();

struct OutgoingFixture {
  OutgoingFixture() = default;
  explicit OutgoingFixture(StreamRequest request) : outgoing(pipe, std::move(request)) {}

  void open(std::uint64_t frames = 0) {
    (void)said();
    outgoing.open(
        {.stream = 3, .id = "mic", .pipeline = "default", .frames = frames, .frame_bytes = 2});
  }
  bool say(std::string_view frames) {
    return pipe.say({reinterpret_cast<const std::byte*>(frames.data()), frames.size()}, at_once);
  }
  bool say(const ClientMessage& command) { return pipe.say(command, at_once); }

  // Everything that can be sent now.
  std::vector<std::string> said() {
    std::vector<std::string> words;
    for (;;) {
      const Bytes message = outgoing.next(encoder);
      if (message.empty()) return words;
      words.push_back(test::words_of(*decoder.to_service(message)));
      outgoing.sent();
    }
  }

  Changes changes;
  StreamPipe pipe{3, {.unsent = 1 << 20, .untaken = 128}, changes, [] {}};
  OutgoingStream outgoing{pipe, {}};
  cp::Encoder encoder;
  cp::Decoder decoder{1 << 20};
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a stream is asked for with what was given, and with nothing else") {
  OutgoingFixture bare;
  CHECK(bare.said() == Words{"3 open pipeline=default"});
  OutgoingFixture full(StreamRequest{
      .pipeline = "vad", .id = "mic", .options = "{}", .format = "f32le", .rate = 12.5, .dim = 80});
  CHECK(full.said() ==
        Words{"3 open pipeline=vad id=mic format=f32le rate=12.5 dim=80 options={}"});
}

TEST_CASE_METHOD(OutgoingFixture, "nothing is sent before the stream is open, nor without credit") {
  say("aabbcc");
  CHECK(said() == Words{"3 open pipeline=default"});
  open();
  CHECK(said().empty());
  outgoing.grant(2);
  CHECK(said() == Words{"3 frames at 0: aabb"});
  outgoing.grant(5);
  CHECK(said() == Words{"3 frames at 2: cc"});
  say("ddee");
  CHECK(said() == Words{"3 frames at 3: ddee"});
}

TEST_CASE_METHOD(OutgoingFixture, "positions go on from where the service is, and over gaps") {
  open(100);
  outgoing.grant(10);
  say("aa");
  say(client_message::Gap{7});
  say("bb");
  CHECK(said() == Words{"3 frames at 100: aa", "3 gap 7", "3 frames at 108: bb"});
}

TEST_CASE_METHOD(OutgoingFixture, "only whole frames are sent, wherever they were cut") {
  open();
  outgoing.grant(10);
  for (const char* bytes : {"a", "ab", "bcc", "d", "", "d", "e"}) say(bytes);
  CHECK(said() ==
        Words{"3 frames at 0: aa", "3 frames at 1: bb", "3 frames at 2: cc", "3 frames at 3: dd"});
}

TEST_CASE_METHOD(OutgoingFixture, "half a frame at the end is the service's to refuse") {
  open();
  outgoing.grant(1);
  say("aab");
  say(client_message::End{});
  CHECK(said() == Words{"3 frames at 0: aa", "3 frames at 1: b", "3 end"});
  CHECK(outgoing.has_ended());
}

TEST_CASE_METHOD(OutgoingFixture,
                 "commands keep their order among the frames that have no credit") {
  open();
  say("aa");
  say(client_message::Flush{7});
  say(client_message::Reset{});
  say(client_message::Flush{});
  CHECK(said().empty());
  outgoing.grant(1);
  CHECK(said() == Words{"3 frames at 0: aa", "3 flush 7", "3 reset", "3 flush"});
}

TEST_CASE_METHOD(OutgoingFixture, "many frames are cut into messages that the service reads") {
  open();
  outgoing.grant(1'000'000);
  say(std::string(70'000, 'x'));
  const auto words = said();
  REQUIRE(words.size() == 3);
  CHECK(words[1] == "3 frames at 16384: " + std::string(32'768, 'x'));
  CHECK(words[2] == "3 frames at 32768: " + std::string(4'464, 'x'));
}

TEST_CASE_METHOD(OutgoingFixture, "a message that found no room is the next one again") {
  open();
  outgoing.grant(10);
  say("abc");
  const auto first = test::words_of(*decoder.to_service(outgoing.next(encoder)));
  CHECK(first == "3 frames at 0: ab");
  CHECK(said() == Words{"3 frames at 0: ab"});
}

TEST_CASE_METHOD(OutgoingFixture, "what was sent makes room for more to be said") {
  open();
  say(std::string(1 << 20, 'x'));
  CHECK_FALSE(say("aa"));
  outgoing.grant(1 << 19);
  (void)said();
  CHECK(say("aa"));
}

TEST_CASE_METHOD(OutgoingFixture, "who is gone has ended, after all that was said") {
  open();
  say("aa");
  pipe.abandon();
  CHECK(said().empty());
  outgoing.grant(1);
  CHECK(said() == Words{"3 frames at 0: aa", "3 end"});
  CHECK(said().empty());
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is cut short says no more than that") {
  open();
  say("aa");
  CHECK(said().empty());
  pipe.fail(StreamFailure::lost(""));
  outgoing.cut_short();
  CHECK(said() == Words{"3 end"});
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is cut short before it was asked for has ended") {
  pipe.fail(StreamFailure::lost(""));
  outgoing.cut_short();
  CHECK(outgoing.has_ended());
  CHECK(said().empty());
}

TEST_CASE_METHOD(OutgoingFixture, "who has sent nothing between two beats says that it lives") {
  CHECK(said() == Words{"3 open pipeline=default"});
  CHECK_FALSE(outgoing.beat());
  CHECK_FALSE(outgoing.beat());  // it waits for the service
  open();
  outgoing.grant(1);
  say("aabb");
  CHECK(said() == Words{"3 frames at 0: aa"});
  CHECK_FALSE(outgoing.beat());
  CHECK(said().empty());
  CHECK(outgoing.beat());
  CHECK(said() == Words{"3 frames at 1: "});  // without credit, and once
  CHECK_FALSE(outgoing.beat());
  say(client_message::Reset{});
  outgoing.grant(1);
  CHECK(said() == Words{"3 frames at 1: bb", "3 reset"});
  say(client_message::Keepalive{});
  CHECK(said() == Words{"3 frames at 2: "});
}

TEST_CASE_METHOD(OutgoingFixture,
                 "nothing is sent while too much waits for the user, but a sign of life") {
  open();
  outgoing.grant(10);
  pipe.deliver(client_event::Flushed{1});
  pipe.deliver(client_event::Flushed{2});
  say("aa");
  say(client_message::End{});
  CHECK(said().empty());
  CHECK_FALSE(outgoing.beat());
  CHECK(outgoing.beat());
  CHECK(said() == Words{"3 frames at 0: "});
  (void)pipe.next(at_once);
  CHECK(said() == Words{"3 frames at 0: aa", "3 end"});
}
