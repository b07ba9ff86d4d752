// SPDX-License-Identifier: Apache-2.0
#include "client/internal/stream_pipe.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "client/client_error.h"
#include "tests/client/stream_texts.h"
#include "tests/support/patience.h"

using namespace millrace;

namespace {

constexpr Time at_once = Time::min();
constexpr Time whenever = Time::max();

// A call that waits in another thread, and its outcome.
class Waiting {
 public:
  explicit Waiting(std::function<bool()> call)
      : code_(std::async(std::launch::async, [this, call = std::move(call)] {
          thread_ = ::gettid();
          return code_of(call);
        })) {}

  // Returns when the thread sleeps, according to the kernel.
  void await_sleep() const {
    const Time limit = Clock::now() + patience;
    while (!sleeps() && Clock::now() < limit) std::this_thread::yield();
  }
  std::string code() { return code_.get(); }

  static std::string code_of(const std::function<bool()>& call) {
    try {
      return call() ? "it was done" : "it was not done in time";
    } catch (const StreamFailed& failed) {
      return failed.code();
    }
  }

 private:
  bool sleeps() const {
    std::ifstream file("/proc/self/task/" + std::to_string(thread_) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(") ");
    return name_end != std::string::npos && stat[name_end + 2] == 'S';
  }

  std::atomic<pid_t> thread_ = 0;
  std::future<std::string> code_;
};

struct PipeFixture {
  bool queue(std::string_view frames) { return pipe.queue(bytes_in(frames), at_once); }
  std::vector<std::string> taken() {
    std::vector<StreamPipe::Queued> queued;
    pipe.take(queued);
    std::vector<std::string> frames;
    for (const auto& entry : queued) frames.push_back(std::get<std::string>(entry));
    return frames;
  }
  void sent(const std::string& frames) { pipe.sent(StreamPipe::Queued(frames)); }
  void deliver(std::uint64_t mark) { pipe.deliver(client_event::Flushed{mark}); }
  std::uint64_t next_mark() {
    const auto event = pipe.next(at_once);
    return event ? std::get<client_event::Flushed>(*event).mark : 0;
  }
  bool readable() {
    pollfd descriptor{changes.descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) == 1;
  }

  int wakes = 0;
  Changes changes;
  StreamPipe pipe{3, {.unsent = 4, .untaken = 128}, changes, [this] { ++wakes; }};
};

}  // namespace

TEST_CASE_METHOD(PipeFixture, "queued input is taken in order, with one wake for all of it") {
  CHECK(queue("ab"));
  CHECK(queue("c"));
  CHECK(wakes == 1);
  CHECK(taken() == std::vector<std::string>{"ab", "c"});
  CHECK(queue("d"));
  CHECK(wakes == 2);
}

TEST_CASE(
    "a packet that is empty or longer than any Opus packet is refused, and nothing is queued") {
  Changes changes;
  StreamPipe pipe(
      3, {.unsent = 1 << 20, .untaken = 128}, changes, [] {}, StreamPipe::Input::packet);
  for (const std::size_t bytes : {0, 61'299})
    CHECK_THROWS_AS(pipe.queue(bytes_in(std::string(bytes, 'x')), at_once), std::invalid_argument);
  CHECK(pipe.queue(bytes_in("x"), at_once));
  CHECK(pipe.queue(bytes_in(std::string(61'298, 'x')), at_once));
  std::vector<StreamPipe::Queued> queued;
  pipe.take(queued);
  CHECK(queued.size() == 2);
}

TEST_CASE_METHOD(PipeFixture, "queueing waits at the bound until input is sent") {
  CHECK(queue("abc"));
  CHECK(queue("defgh"));  // the queue was below its bound by one byte
  CHECK_FALSE(queue("i"));
  (void)taken();
  CHECK_FALSE(queue("i"));
  sent("abc");
  CHECK_FALSE(queue("i"));
  std::jthread other([&] { sent("defgh"); });
  CHECK(pipe.queue(bytes_in("i"), whenever));
  CHECK(taken() == std::vector<std::string>{"i"});
}

TEST_CASE_METHOD(
    PipeFixture,
    "a stream is held up when its events reach the bound, until half of them are taken") {
  deliver(1);
  CHECK_FALSE(pipe.held_up());
  deliver(2);
  deliver(3);
  const Time before = Clock::now();
  CHECK(pipe.held_up());
  CHECK(next_mark() == 1);
  CHECK(pipe.held_up());
  CHECK(wakes == 0);
  CHECK(pipe.held_up_since() >= before);
  CHECK(next_mark() == 2);
  CHECK(wakes == 1);
  CHECK_FALSE(pipe.held_up());
  CHECK(next_mark() == 3);
  CHECK(wakes == 1);
  CHECK_FALSE(pipe.next(at_once));
}

TEST_CASE_METHOD(PipeFixture, "the data of results and messages counts for the bound") {
  pipe.deliver(client_event::Result{.answer = {Answer::Kind::text, std::string(64, 'x')}});
  CHECK(pipe.held_up());
  (void)pipe.next(at_once);
  CHECK_FALSE(pipe.held_up());
  pipe.deliver(client_event::Message{0, 0, {Answer::Kind::text, std::string(64, 'x')}});
  CHECK(pipe.held_up());
}

TEST_CASE_METHOD(PipeFixture,
                 "each event that is taken restarts the time for which the stream is held up") {
  for (std::uint64_t mark : {1, 2, 3, 4}) deliver(mark);
  CHECK(pipe.held_up());
  const Time before = Clock::now();
  CHECK(next_mark() == 1);
  CHECK(pipe.held_up());
  CHECK(pipe.held_up_since() >= before);
}

TEST_CASE_METHOD(PipeFixture, "a call that waits for an event gets it, or the end") {
  std::jthread other([&] {
    deliver(7);
    pipe.close({.frames = 5, .chunks = 1});
  });
  CHECK(pipe.next(Clock::now() + patience) == ClientEvent(client_event::Flushed{7}));
  CHECK(pipe.next(whenever) == ClientEvent(client_event::Closed{5, 1}));
  CHECK_FALSE(pipe.next(whenever));
  CHECK(pipe.over());
}

TEST_CASE_METHOD(PipeFixture, "a call that waits returns at its deadline") {
  CHECK_FALSE(pipe.next(Clock::now()));
  CHECK(queue("abcd"));
  CHECK_FALSE(pipe.queue(bytes_in("e"), Clock::now()));
}

TEST_CASE_METHOD(PipeFixture, "a failure is thrown by every call, after the events before it") {
  deliver(1);
  pipe.fail(StreamFailure::lost("gone"));
  pipe.close({});
  deliver(2);
  CHECK_THROWS_AS(queue("a"), ConnectionLost);
  CHECK(next_mark() == 1);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(pipe.next(whenever), ConnectionLost);
  CHECK_FALSE(pipe.over());
}

TEST_CASE_METHOD(PipeFixture,
                 "nothing can be queued after the end, and a second end does nothing") {
  CHECK(pipe.queue(client_message::End{}, at_once));
  for (int i = 0; i < 2; ++i) {
    CHECK(pipe.queue(client_message::End{}, at_once));
    CHECK_THROWS_AS(pipe.queue(client_message::Reset{}, whenever), std::logic_error);
    CHECK_THROWS_AS(queue("a"), std::logic_error);
    pipe.close({});
  }
  CHECK(wakes == 1);
}

TEST_CASE_METHOD(PipeFixture, "nothing can be queued after the service has ended the stream") {
  pipe.close({});
  try {
    queue("a");
    FAIL("it was taken");
  } catch (const StreamFailed& failed) {
    CHECK(failed.code() == "closed");
  }
}

TEST_CASE_METHOD(PipeFixture,
                 "an abandoned stream takes no events, and reports that it is abandoned") {
  deliver(1);
  deliver(2);
  CHECK(pipe.held_up());
  pipe.abandon();
  CHECK(wakes == 1);
  CHECK(pipe.abandoned());
  deliver(3);
  CHECK_FALSE(pipe.held_up());
  pipe.close({});
  pipe.abandon();
  CHECK(wakes == 1);
}

TEST_CASE_METHOD(PipeFixture, "closing a stream fails the calls that wait in it, and later calls") {
  CHECK(queue("abcd"));
  const Time in_time = Clock::now() + patience;
  const auto next = [&] { return pipe.next(in_time).has_value(); };
  const auto send = [&] { return pipe.queue(bytes_in("e"), in_time); };
  Waiting taker(next), sender(send);
  taker.await_sleep();
  sender.await_sleep();
  pipe.abandon();
  CHECK(taker.code() == "closed");
  CHECK(sender.code() == "closed");
  CHECK(Clock::now() < in_time);  // each was woken
  CHECK(taken() == std::vector<std::string>{"abcd"});
  pipe.close({});
  CHECK(Waiting::code_of(next) == "closed");
  CHECK(Waiting::code_of(send) == "closed");
  CHECK_FALSE(pipe.over());
}

TEST_CASE_METHOD(PipeFixture, "a stream that has ended cannot be closed any more") {
  deliver(1);
  pipe.close({.frames = 5, .chunks = 1});
  pipe.abandon();
  CHECK(next_mark() == 1);
  CHECK(pipe.next(at_once) == ClientEvent(client_event::Closed{5, 1}));
  CHECK(pipe.over());
}

TEST_CASE_METHOD(PipeFixture,
                 "a change is recorded once, and only after a call that did not succeed") {
  CHECK_FALSE(readable());
  deliver(1);
  CHECK_FALSE(readable());  // no call has failed before
  CHECK(next_mark() == 1);
  CHECK(next_mark() == 0);
  deliver(2);
  deliver(3);
  CHECK(readable());
  CHECK(changes.take() == std::vector<std::uint64_t>{3});
  CHECK_FALSE(readable());
  CHECK(changes.take().empty());
  CHECK(queue("abcd"));
  CHECK_FALSE(queue("e"));
  sent("abcd");
  CHECK(changes.take() == std::vector<std::uint64_t>{3});
}

TEST_CASE_METHOD(PipeFixture, "the end of a stream is a change") {
  (void)changes.descriptor();
  CHECK(next_mark() == 0);
  pipe.fail(StreamFailure::lost("gone"));
  CHECK(changes.take() == std::vector<std::uint64_t>{3});
}

TEST_CASE("changes are not recorded before the descriptor exists") {
  Changes changes;
  changes.add(1);
  CHECK(changes.take().empty());
}
