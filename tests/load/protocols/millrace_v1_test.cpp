// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/millrace_v1.h"

#include <catch2/catch.hpp>

#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;

TEST_CASE("a commit is a flush, and finished when the service returns its mark") {
  MillraceV1 protocol({.pipeline = "p"});
  SessionUnderTest at(protocol);
  CHECK(protocol.target("b1-7-0") == "/v1/stream?pipeline=p&id=b1-7-0");
  CHECK(at.sink.record == "opened ");
  at.sink.record = "";
  at.commit(10);
  at.commit(20);
  CHECK(at.written == R"({"type":"flush","mark":0} {"type":"flush","mark":1} )");
  CHECK(at.effect_of(R"({"type":"flushed","mark":0})") == "finished:10 ");
  CHECK(at.effect_of(R"({"type":"flushed","mark":1})") == "finished:20 ");
  CHECK(at.continues);
  at.effect_of(R"({"type":"flushed","mark":2})");
  CHECK_FALSE(at.continues);
}
