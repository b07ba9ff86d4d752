// SPDX-License-Identifier: Apache-2.0
#include "training/serving/refusals.h"

#include <catch2/catch.hpp>
#include <string>

#include "schemas/text.h"
#include "schemas/worker_codec.h"

using namespace millrace;
using namespace millrace::training;

TEST_CASE("a data error becomes a refusal that names the stream, the file and the step") {
  const auto refused = refusal_of({.error = {DataFault::read, "/data/a.wav: damaged"},
                                   .stream = 17,
                                   .name = "a",
                                   .epoch = 2,
                                   .step = 5});
  CHECK(refused.code == "data");
  CHECK(refused.message == R"(stream 17 "a": /data/a.wav: damaged)");
  CHECK(refused.details == R"({"stream":17,"name":"a","message":"/data/a.wav: damaged",)"
                           R"("fault":"read","epoch":2,"step":5})");
}

TEST_CASE("a refusal can be sent, whatever bytes its texts have") {
  for (const std::string& text : {std::string("a\nb\x01\xff\xc3"), std::string(10'000, '"'),
                                  std::string("\xe2\x80\xae"), std::string()}) {
    const auto refused = refusal_of({.error = {DataFault::function, text}, .name = text});
    worker_protocol::Encoder encoder;
    worker_protocol::Decoder decoder(1 << 20);
    const auto read = decoder.to_worker(encoder.encode(refused));
    REQUIRE(read.has_value());
    CHECK(std::get<worker_protocol::Refused>(*read) == refused);
  }
}

TEST_CASE("a refusal has the bytes of a name that is not UTF-8") {
  const auto refused =
      refusal_of({.error = {DataFault::read, "/gr\xf6.wav: damaged"}, .name = "gr\xf6"});
  CHECK(refused.message == R"(stream 0 "gr\xf6": /gr\xf6.wav: damaged)");
  CHECK_THAT(refused.details,
             Catch::Contains(R"("name":"gr\udcf6","message":"/gr\udcf6.wav: damaged")"));
}

TEST_CASE("a line keeps its characters, except those that cannot be printed") {
  CHECK(printable_line("a\tb\nc") == "a b c");
  CHECK(printable_line("\xc3\xa9\xff!") == "\xc3\xa9\\xff!");
  CHECK(printable_line(std::string(5000, 'x')).size() == 4000);
}
