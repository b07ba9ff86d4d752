// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/client/outgoing_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("Open has the given parameters, and no others") {
  OutgoingFixture bare;
  CHECK(bare.sent_messages() == Words{"3 open pipeline=default"});
  OutgoingFixture full(StreamRequest{
      .pipeline = "vad", .id = "mic", .options = "{}", .format = "f32le", .rate = 12.5, .dim = 80});
  CHECK(full.sent_messages() ==
        Words{"3 open pipeline=vad id=mic format=f32le rate=12.5 dim=80 options={}"});
  OutgoingFixture call(StreamRequest{
      .format = "mulaw", .channel = "mean", .chunk = "160ms", .rate = 8000, .channels = 2});
  CHECK(call.sent_messages() == Words{"3 open pipeline=default format=mulaw rate=8000 channels=2 "
                                      "channel=mean chunk=160ms"});
}

TEST_CASE("Open has the token of the client") {
  OutgoingFixture fixture;
  fixture.token = "abc";
  CHECK(fixture.sent_messages() == Words{"3 open pipeline=default token=abc"});
}

TEST_CASE("Open of a stream that declines to be recorded has record=no") {
  OutgoingFixture declines(StreamRequest{.record = false});
  CHECK(declines.sent_messages() == Words{"3 open pipeline=default record=no"});
}

TEST_CASE_METHOD(OutgoingFixture, "nothing is sent before the stream is open, nor without credit") {
  queue("aabbcc");
  CHECK(sent_messages() == Words{"3 open pipeline=default"});
  open();
  CHECK(sent_messages().empty());
  outgoing.grant(2);
  CHECK(sent_messages() == Words{"3 frames at 0: aabb"});
  outgoing.grant(5);
  CHECK(sent_messages() == Words{"3 frames at 2: cc"});
  queue("ddee");
  CHECK(sent_messages() == Words{"3 frames at 3: ddee"});
}

TEST_CASE_METHOD(OutgoingFixture, "positions continue from that of the service, and across gaps") {
  open(100);
  outgoing.grant(10);
  queue("aa");
  queue(client_message::Gap{7});
  queue("bb");
  CHECK(sent_messages() == Words{"3 frames at 100: aa", "3 gap 7", "3 frames at 108: bb"});
}

TEST_CASE_METHOD(OutgoingFixture, "messages to the worker keep their place, and need no credit") {
  open();
  outgoing.grant(1);
  queue("aa");
  queue(client_message::Message{"[1]"});
  queue(client_message::Set{R"({"lang":"de"})"});
  queue("bb");
  CHECK(sent_messages() == Words{"3 frames at 0: aa", "3 post [1]", R"(3 set {"lang":"de"})"});
}

TEST_CASE_METHOD(OutgoingFixture, "only whole frames are sent, wherever they were cut") {
  open();
  outgoing.grant(10);
  for (const char* bytes : {"a", "ab", "bcc", "d", "", "d", "e"}) queue(bytes);
  CHECK(sent_messages() ==
        Words{"3 frames at 0: aa", "3 frames at 1: bb", "3 frames at 2: cc", "3 frames at 3: dd"});
}

TEST_CASE_METHOD(OutgoingFixture, "a partial frame at the end is sent, for the service to refuse") {
  open();
  outgoing.grant(1);
  queue("aab");
  queue(client_message::End{});
  CHECK(sent_messages() == Words{"3 frames at 0: aa", "3 frames at 1: b", "3 end"});
}

TEST_CASE("each packet is a message, and counts as one frame") {
  OutgoingFixture opus(StreamPipe::Input::packet);
  opus.open(0, 0);
  for (const char* packet : {"abcde", "f", "ghi"}) opus.queue(packet);
  CHECK(opus.sent_messages().empty());
  opus.outgoing.grant(2);
  CHECK(opus.sent_messages() == Words{"3 frames at 0: abcde", "3 frames at 1: f"});
  opus.queue(client_message::Gap{5});
  opus.queue(std::string(60'000, 'x'));
  opus.queue(client_message::End{});
  opus.outgoing.grant(9);
  CHECK(opus.sent_messages() == Words{"3 frames at 2: ghi", "3 gap 5",
                                      "3 frames at 8: " + std::string(60'000, 'x'), "3 end"});
}

TEST_CASE_METHOD(OutgoingFixture,
                 "commands keep their order among the frames that have no credit") {
  open();
  queue("aa");
  queue(client_message::Flush{7});
  queue(client_message::Reset{});
  queue(client_message::Flush{});
  CHECK(sent_messages().empty());
  outgoing.grant(1);
  CHECK(sent_messages() == Words{"3 frames at 0: aa", "3 flush 7", "3 reset", "3 flush"});
}

TEST_CASE_METHOD(OutgoingFixture,
                 "many frames are split into messages below the limit of the service") {
  open();
  outgoing.grant(1'000'000);
  queue(std::string(70'000, 'x'));
  const auto words = sent_messages();
  REQUIRE(words.size() == 3);
  CHECK(words[1] == "3 frames at 16384: " + std::string(32'768, 'x'));
  CHECK(words[2] == "3 frames at 32768: " + std::string(4'464, 'x'));
}

TEST_CASE_METHOD(OutgoingFixture, "a message that was not sent is returned again") {
  open();
  outgoing.grant(10);
  queue("abc");
  const auto first = test::words_of(*decoder.to_service(outgoing.next(encoder, now)));
  CHECK(first == "3 frames at 0: ab");
  CHECK(sent_messages() == Words{"3 frames at 0: ab"});
}

TEST_CASE_METHOD(OutgoingFixture, "sent frames free space in the queue") {
  open();
  queue(std::string(1 << 20, 'x'));
  CHECK_FALSE(queue("aa"));
  outgoing.grant(1 << 19);
  (void)sent_messages();
  CHECK(queue("aa"));
}

TEST_CASE_METHOD(OutgoingFixture, "an abandoned stream ends after all queued input") {
  open();
  queue("aa");
  pipe.abandon();
  CHECK(sent_messages().empty());
  outgoing.grant(1);
  CHECK(sent_messages() == Words{"3 frames at 0: aa", "3 end"});
  CHECK(sent_messages().empty());
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is cut short sends only End") {
  open();
  queue("aa");
  CHECK(sent_messages().empty());
  pipe.fail(StreamFailure::lost(""));
  outgoing.cut_short();
  CHECK(sent_messages() == Words{"3 end"});
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is cut short before Open has ended") {
  pipe.fail(StreamFailure::lost(""));
  outgoing.cut_short();
  CHECK(outgoing.is_over());
  CHECK(sent_messages().empty());
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that sent nothing in an interval sends a keepalive") {
  CHECK(sent_messages() == Words{"3 open pipeline=default"});
  CHECK_FALSE(outgoing.check_idle());
  CHECK_FALSE(outgoing.check_idle());  // not open yet
  open();
  outgoing.grant(1);
  queue("aabb");
  CHECK(sent_messages() == Words{"3 frames at 0: aa"});
  CHECK_FALSE(outgoing.check_idle());
  CHECK(sent_messages().empty());
  CHECK(outgoing.check_idle());
  CHECK(sent_messages() == Words{"3 frames at 1: "});  // without credit, and once
  CHECK_FALSE(outgoing.check_idle());
  queue(client_message::Reset{});
  outgoing.grant(1);
  CHECK(sent_messages() == Words{"3 frames at 1: bb", "3 reset"});
  queue(client_message::Keepalive{});
  CHECK(sent_messages() == Words{"3 frames at 2: "});
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is held up sends only keepalives") {
  open();
  outgoing.grant(10);
  pipe.deliver(client_event::Flushed{1});
  pipe.deliver(client_event::Flushed{2});
  queue("aa");
  queue(client_message::End{});
  CHECK(sent_messages().empty());
  CHECK_FALSE(outgoing.check_idle());
  CHECK(outgoing.check_idle());
  CHECK(sent_messages() == Words{"3 frames at 0: "});
  (void)pipe.next(Time::min());
  CHECK(sent_messages() == Words{"3 frames at 0: aa", "3 end"});
}
