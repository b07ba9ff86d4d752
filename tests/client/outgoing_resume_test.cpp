// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <optional>

#include "tests/client/outgoing_fixture.h"

using namespace millrace;
using namespace millrace::test;
namespace cp = client_protocol;

namespace {

struct ResumingFixture : OutgoingFixture {
  ResumingFixture() : OutgoingFixture(StreamRequest{.resume = true}) {}
  explicit ResumingFixture(StreamPipe::Input input) : OutgoingFixture(input) {}

  // The service has answered an Open.
  void answer(std::uint64_t frames, std::uint64_t commands, std::optional<bool> resumed) {
    StreamReady parts{};
    cp::Ready ready{};
    parts.frame_bytes = ready.frame_bytes = pipe.has_packets() ? 0 : 2;
    parts.frames = ready.frames = frames;
    parts.commands = commands;
    parts.keep = 100;
    parts.resume = "secret-1";
    parts.resumed = resumed;
    if (resumed)
      REQUIRE(state.resume(parts, now));
    else
      state.open(parts, now);
    outgoing.open(ready);
  }
  void open_to_resume() {
    pipe.deliver(client_event::Opened{"mic", "default"});
    CHECK(sent_messages() == Words{"3 open pipeline=default resume"});
    answer(0, 0, {});
    outgoing.grant(10);
  }
  // Loses the connection; the service has this much.
  void resume(std::uint64_t frames, std::uint64_t commands) {
    outgoing.wait();
    CHECK(sent_messages().empty());
    outgoing.request();
    CHECK(sent_messages() == Words{"3 open pipeline=default id=mic resume from=secret-1"});
    CHECK(sent_messages().empty());
    answer(frames, commands, true);
  }
  void receive(std::uint64_t n) {
    CHECK(state.receive(cp::ToClient(cp::Message{.stream = 3, .n = n})) ==
          ResumingStream::Verdict::deliver);
  }
};

}  // namespace

TEST_CASE_METHOD(ResumingFixture, "a stream that is resumed sends what the service does not have") {
  open_to_resume();
  queue("aab");
  queue(client_message::Flush{7});
  queue("bcc");
  const Words all{"3 frames at 0: aa", "3 flush 7", "3 frames at 1: bb", "3 frames at 2: cc"};
  CHECK(sent_messages() == all);
  resume(1, 0);
  CHECK(sent_messages() == Words{"3 flush 7"});  // credit begins anew
  outgoing.grant(1);
  CHECK(sent_messages() == Words{"3 frames at 1: bb"});
  resume(2, 1);
  outgoing.grant(10);
  CHECK(sent_messages() == Words{"3 frames at 2: cc"});
  queue("dd");
  CHECK(sent_messages() == Words{"3 frames at 3: dd"});
}

TEST_CASE("packets that did not arrive are sent again with their positions") {
  ResumingFixture opus(StreamPipe::Input::packet);
  (void)opus.sent_messages();
  opus.answer(0, 0, {});
  opus.outgoing.grant(10);
  opus.queue("abc");
  opus.queue("d");
  CHECK(opus.sent_messages() == Words{"3 frames at 0: abc", "3 frames at 1: d"});
  opus.outgoing.request();
  (void)opus.sent_messages();
  opus.answer(1, 0, true);
  opus.outgoing.grant(10);
  CHECK(opus.sent_messages() == Words{"3 frames at 1: d"});
}

TEST_CASE_METHOD(ResumingFixture, "the end that the service has received is not sent again") {
  open_to_resume();
  queue("aab");
  pipe.abandon();
  const Words all{"3 frames at 0: aa", "3 frames at 1: b", "3 end"};
  CHECK(sent_messages() == all);
  resume(0, 0);
  outgoing.grant(10);
  CHECK(sent_messages() == all);
  resume(1, 1);
  CHECK(sent_messages().empty());
  CHECK_FALSE(outgoing.check_idle());
  CHECK_FALSE(outgoing.check_idle());  // the service would reject a keepalive
}

TEST_CASE_METHOD(ResumingFixture, "half a frame before a gap is sent, for the service to reject") {
  open_to_resume();
  queue("aab");
  queue(client_message::Gap{5});
  queue("cc");
  CHECK(sent_messages() ==
        Words{"3 frames at 0: aa", "3 frames at 1: b", "3 gap 5", "3 frames at 6: cc"});
  resume(6, 1);
  outgoing.grant(10);
  CHECK(sent_messages() == Words{"3 frames at 6: cc"});
}

TEST_CASE_METHOD(ResumingFixture, "an acknowledgement is sent before the next input, or alone") {
  open_to_resume();
  receive(0);
  queue("aa");
  CHECK(sent_messages() == Words{"3 frames at 0: aa"});  // a second has not passed
  now += std::chrono::seconds(1);
  CHECK(sent_messages().empty());
  queue("bb");
  CHECK(sent_messages() == Words{"3 received before 1", "3 frames at 1: bb"});
  receive(1);
  now += std::chrono::seconds(1);
  CHECK_FALSE(outgoing.check_ack(now));  // input may follow
  CHECK(outgoing.check_ack(now));
  CHECK(sent_messages() == Words{"3 received before 2"});
  CHECK_FALSE(outgoing.check_ack(now));
}

TEST_CASE_METHOD(ResumingFixture, "after the end, an acknowledgement is sent when it is due") {
  open_to_resume();
  queue(client_message::End{});
  CHECK(sent_messages() == Words{"3 end"});
  receive(0);
  CHECK_FALSE(outgoing.check_ack(now));
  now += std::chrono::seconds(1);
  CHECK(outgoing.check_ack(now));
  CHECK(sent_messages() == Words{"3 received before 1"});
}

TEST_CASE_METHOD(ResumingFixture, "the last message of a stream is acknowledged at once") {
  open_to_resume();
  queue("aa");
  outgoing.finish(4);
  CHECK(sent_messages() == Words{"3 received before 4"});
  CHECK(outgoing.is_over());
}

TEST_CASE_METHOD(ResumingFixture, "a goaway that the service repeats over ZeroMQ is one event") {
  open_to_resume();
  CHECK(state.receive(cp::ToClient(cp::Goaway{})) == ResumingStream::Verdict::deliver);
  CHECK(state.receive(cp::ToClient(cp::Goaway{})) == ResumingStream::Verdict::drop);
}

TEST_CASE_METHOD(OutgoingFixture, "a stream that is not resumed is over without an answer") {
  open();
  outgoing.finish(0);
  CHECK(outgoing.is_over());
}

TEST_CASE_METHOD(ResumingFixture, "a service that refuses to resume is asked without it") {
  CHECK(sent_messages() == Words{"3 open pipeline=default resume"});
  outgoing.request_without_resume();
  CHECK(sent_messages() == Words{"3 open pipeline=default"});
}
