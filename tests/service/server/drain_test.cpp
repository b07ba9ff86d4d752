// SPDX-License-Identifier: Apache-2.0
// Times and messages of a drain.
#include <catch2/catch.hpp>

#include "service/config/drain_times.h"
#include "service/pipelines/goaway_schedule.h"
#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr Time begin(1000s);

DrainTimes times_of(Duration drain, Duration linger = {}, Duration notice = {}) {
  LimitOptions limits;
  limits.drain = drain;
  limits.linger = linger;
  limits.notice = notice;
  return drain_times(begin, limits);
}

std::vector<StreamId> streams(std::uint64_t count) {
  std::vector<StreamId> ids;
  for (std::uint64_t i = 0; i < count; ++i) ids.push_back(StreamId{i});
  return ids;
}

std::size_t goaways(const std::vector<std::string>& messages) {
  return static_cast<std::size_t>(std::ranges::count_if(
      messages, [](const std::string& text) { return text.find("goaway") != text.npos; }));
}

}  // namespace

TEST_CASE("drain includes linger and notice, and ends with time to cut streams off") {
  const DrainTimes times = times_of(25s, 3s, 10s);
  CHECK(times.linger_ends == begin + 3s);
  CHECK(times.notice_ends == begin + 13s);
  CHECK(times.worker_wait_ends == begin + 19s);
  CHECK(times.cut_off == begin + 24'500ms);
  CHECK(times.exit == begin + 25s);
}

TEST_CASE("in a short drain, the last quarter of the rest is for cutting streams off") {
  CHECK(times_of(1s).cut_off == begin + 750ms);
  CHECK(times_of(4s, 3s).cut_off == begin + 3'750ms);
  CHECK(times_of(0s).cut_off == begin);
}

TEST_CASE("the messages of a notice are spread evenly over its time") {
  GoawaySchedule schedule(streams(4), begin, begin + 8s);
  std::vector<std::size_t> due;
  for (Time now = begin; now <= begin + 8s; now += 1s) due.push_back(schedule.take_due(now).size());
  CHECK(due == std::vector<std::size_t>{1, 0, 1, 0, 1, 0, 1, 0, 0});
  CHECK(schedule.next_due() == begin + 8s);
}

TEST_CASE("a goaway schedule whose timer is late catches up") {
  GoawaySchedule schedule(streams(1000), begin, begin + 10s);
  CHECK(schedule.next_due() == begin);
  CHECK(schedule.take_due(begin + 4'999ms).size() == 500);
  CHECK(schedule.next_due() == begin + 5s);
  CHECK(schedule.take_due(begin + 1h).size() == 500);
}

TEST_CASE("a stream that has received goaway continues, and receives no second one") {
  AdmissionUnderTest d;
  auto& worker = d.attach();
  auto& client = d.open();
  (void)client.received();
  REQUIRE(d.admission->table().without_goaway().size() == 1);
  Stream& stream = *d.admission->table().find(d.admission->table().without_goaway().front());
  stream.goaway();
  CHECK(d.admission->table().without_goaway().empty());
  CHECK(goaways(client.received()) == 1);
  d.send_row(client);
  d.answer(worker);
  d.admission->table().drain(Clock::now());
  d.run();
  d.answer(worker);  // END
  const auto received = client.received();
  CHECK(goaways(received) == 0);
  CHECK(received.back() == R"({"type":"closed","frames":4,"chunks":1})");
  CHECK(client.outbox.queue().closing()->code == 1012);
}

TEST_CASE("the destruction of the last stream is reported") {
  AdmissionUnderTest d;
  int reported = 0;
  d.admission->table().when_empty([&] { ++reported; });
  auto& first = d.open();
  auto& second = d.open();
  AdmissionUnderTest::disconnect(first);
  CHECK(reported == 0);
  AdmissionUnderTest::disconnect(second);
  d.run();
  CHECK(reported == 1);
}
