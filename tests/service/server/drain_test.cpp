// SPDX-License-Identifier: Apache-2.0
// The phases of a drain.
#include <catch2/catch.hpp>

#include "service/config/drain_times.h"
#include "service/pipelines/notice.h"
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

TEST_CASE("linger and notice are parts of drain, and its end leaves time to cut streams off") {
  const DrainTimes times = times_of(25s, 3s, 10s);
  CHECK(times.linger_ends == begin + 3s);
  CHECK(times.notice_ends == begin + 13s);
  CHECK(times.gives_up == begin + 19s);
  CHECK(times.cuts == begin + 24'500ms);
  CHECK(times.ends == begin + 25s);
}

TEST_CASE("a short drain leaves a quarter of its rest to cut streams off") {
  CHECK(times_of(1s).cuts == begin + 750ms);
  CHECK(times_of(4s, 3s).cuts == begin + 3'750ms);
  CHECK(times_of(0s).cuts == begin);
}

TEST_CASE("the messages of a notice are spread evenly over its time") {
  Notice notice(streams(4), begin, begin + 8s);
  std::vector<std::size_t> due;
  for (Time now = begin; now <= begin + 8s; now += 1s) due.push_back(notice.take_due(now).size());
  CHECK(due == std::vector<std::size_t>{1, 0, 1, 0, 1, 0, 1, 0, 0});
  CHECK(notice.next() == begin + 8s);
}

TEST_CASE("a notice whose timer is late makes up for it") {
  Notice notice(streams(1000), begin, begin + 10s);
  CHECK(notice.next() == begin);
  CHECK(notice.take_due(begin + 4'999ms).size() == 500);
  CHECK(notice.next() == begin + 5s);
  CHECK(notice.take_due(begin + 1h).size() == 500);
}

TEST_CASE("a stream that has received goaway continues, and receives no second one") {
  AdmissionUnderTest d;
  auto& worker = d.attach();
  auto& client = d.open();
  (void)client.told();
  REQUIRE(d.admission->table().without_goaway().size() == 1);
  Stream& stream = *d.admission->table().find(d.admission->table().without_goaway().front());
  stream.goaway();
  CHECK(d.admission->table().without_goaway().empty());
  CHECK(goaways(client.told()) == 1);
  d.send_row(client);
  d.answer(worker);
  d.admission->table().drain(Clock::now());
  d.run();
  d.answer(worker);  // END
  const auto told = client.told();
  CHECK(goaways(told) == 0);
  CHECK(told.back() == R"({"type":"closed","frames":4,"chunks":1})");
  CHECK(client.outbox.queue().closing()->code == 1012);
}

TEST_CASE("when the last stream has gone, that is reported") {
  AdmissionUnderTest d;
  int reported = 0;
  d.admission->table().when_empty([&] { ++reported; });
  auto& first = d.open();
  auto& second = d.open();
  AdmissionUnderTest::hang_up(first);
  CHECK(reported == 0);
  AdmissionUnderTest::hang_up(second);
  d.run();
  CHECK(reported == 1);
}
