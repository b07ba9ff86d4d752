// SPDX-License-Identifier: Apache-2.0
// The messages of a resumable stream that its connection has no room for yet.
#include <catch2/catch.hpp>

#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE_METHOD(ResumedStream, "a connection is given messages in order while it is not full") {
  send(30);
  lose();
  answer(1);
  Link& link = links.emplace_back();
  link.client.is_full = true;
  link.stream = kept->attach(link.client, 1, 0, "token 2", true, live.now);
  answer(1);
  CHECK(link.said().empty());
  link.client.is_full = false;
  link.stream->written(0, live.now);
  CHECK(link.said() == Said{"result 0 said", "result 1 said"});
  answer(1);
  CHECK(link.said() == Said{"result 2 said"});
  CHECK(link.numbers() == Numbers{0, 1, 2});
}

TEST_CASE_METHOD(ResumedStream, "a place is acknowledged after the results before it were given") {
  send(10);
  link().stream->flush({}, live.now);
  link().client.is_full = true;
  answer(2);
  check_after(1s);
  CHECK(link().client.points.empty());
  link().client.is_full = false;
  link().write(live.now);
  check_after(1s);
  CHECK(link().client.points.size() == 1);
}

TEST_CASE_METHOD(ResumedStream, "a message that was not given cannot be acknowledged") {
  send(10);
  link().client.is_full = true;
  answer(1);
  link().stream->acknowledge(1, live.now);
  link().client.is_full = false;
  link().write(live.now);
  CHECK(link().said() == Said{"result 0 said", "error schema"});
}

TEST_CASE_METHOD(ResumedStream, "a connection that fails receives the error and the next one all") {
  send(20);
  answer(1);
  link().client.is_full = true;
  answer(1);
  link().stream->fail(ErrorCode::slow_reader, "", live.now);
  CHECK(link().said() == Said{"result 0 said", "error slow_reader"});
  link().stream->fail(ErrorCode::slow_reader, "", live.now);
  CHECK(link().said().empty());
  CHECK(link().numbers() == Numbers{0, 2});
  lose();
  connect(1, 1);
  CHECK(link().said() == Said{"result 1 said", "error slow_reader"});
}

TEST_CASE_METHOD(ResumedStream, "a connection that fails after its stream receives that error") {
  send(20);
  link().client.is_full = true;
  answer(1);
  live.stream.fail(ErrorCode::internal, "", live.now);
  CHECK(link().said().empty());
  link().stream->fail(ErrorCode::slow_reader, "", live.now);
  CHECK(link().said() == Said{"error internal"});
}
