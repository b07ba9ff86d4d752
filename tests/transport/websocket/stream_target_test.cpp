// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/stream_target.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

// "parameter: message", or "" if the target is valid.
std::string problem(std::string_view query) {
  const auto request = parse_stream_target("/v1/stream?" + std::string(query));
  if (request) return {};
  CHECK(request.error().status == 400);
  return request.error().parameter + ": " + request.error().message;
}

unsigned status_for(std::string_view target) {
  const auto request = parse_stream_target(target);
  return request ? 200 : request.error().status;
}

}  // namespace

TEST_CASE("every parameter of the target is optional") {
  const auto request = parse_stream_target("/v1/stream");
  REQUIRE(request.has_value());
  CHECK(request->pipeline == "default");
  CHECK(request->id.empty());
  CHECK(request->options.empty());
  CHECK_FALSE((request->format || request->rate || request->channels || request->dim));
}

TEST_CASE("the numbers of a client that resumes are read as they are written") {
  const StreamRequest request{
      .id = "kitchen",
      .resume = true,
      .resumption = Resumption{
          .n = 7, .point = {1, 2, 3, 4, 5}, .results = 8, .flushed = 9, .set = R"({"a":1})"}};
  const auto read = parse_stream_target(stream_target(request));
  REQUIRE(read.has_value());
  CHECK(read->resume);
  CHECK(read->resumption == request.resumption);
  for (const char* name : {"n", "seq", "from", "commands", "begin", "skip", "have", "flushed"})
    for (const char* value : {"", "-1", "1.5", "x", "9007199254740992"})
      CHECK(problem(std::string(name) + "=" + value) ==
            std::string(name) + ": must be a whole number from 0 to 2^53-1");
  CHECK(problem("resume=0") == "resume: must be 1");
  CHECK(problem("set=7") == "set: must be a JSON object");
}

TEST_CASE("every parameter is read, percent-decoded") {
  const auto request = parse_stream_target(
      "/v1/stream?pipeline=vad&format=f32le&rate=12.5&channels=2&dim=80&id=a.B-9_&channel=1"
      "&chunk=100ms&options=%7B%22hot%22:+%22gr%c3%bc%c3%9f%22%7d");
  REQUIRE(request.has_value());
  CHECK(request->pipeline == "vad");
  CHECK(request->format == "f32le");
  CHECK(request->rate == 12.5);
  CHECK(request->channels == 2u);
  CHECK(request->dim == 80u);
  CHECK(request->id == "a.B-9_");
  CHECK(request->channel == "1");
  CHECK(request->chunk == "100ms");
  CHECK(request->options == R"({"hot": "grüß"})");
}

TEST_CASE("a wrong parameter is named") {
  CHECK(problem("rte=16000") == "rte: no such parameter");
  CHECK(problem("rate=1&channels=1&rate=1") == "rate: given twice");
  CHECK(problem("rate=fast") == "rate: must be a number");
  CHECK(problem("rate=16000x") == "rate: must be a number");
  CHECK(problem("rate=nan") == "rate: must be a number");
  CHECK(problem("rate=1e999") == "rate: must be a number");
  CHECK(problem("channels=-1") == "channels: must be a whole number");
  CHECK(problem("channels=1.5") == "channels: must be a whole number");
  CHECK(problem("dim=4294967296") == "dim: must be a whole number");
  CHECK(problem("format=") == "format: must not be empty");
  CHECK(problem("channels") == "channels: must be a whole number");
  for (const std::string bad : {"%", "%4", "%zz", "%4g", "%+4", "%-4", "% 4"})
    CHECK(problem("id=" + bad) == "id: malformed percent-encoding");
  CHECK(problem("=1") == ": no such parameter");
  CHECK(problem(std::string(100, 'x') + "=1") == std::string(64, 'x') + ": no such parameter");
}

TEST_CASE("a name has only plain characters") {
  CHECK(problem("id=" + std::string(128, 'x')).empty());
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("..%2f"), std::string("a%00b"),
        std::string("a%0ab"), std::string("%7b%22%7d"), std::string("%ff"), std::string("a+b")})
    CHECK(problem("id=" + bad) == "id: must match [A-Za-z0-9._-]{1,128}");
}

TEST_CASE("options are a JSON object of at most 4096 bytes") {
  const auto object = [](std::size_t length) {
    return R"({"a":")" + std::string(length - 8, 'x') + R"("})";
  };
  CHECK(problem("options=" + object(4096)).empty());
  CHECK(problem("options=" + object(4097)) == "options: must be at most 4096 bytes");
  CHECK(problem("options=[]") == "options: must be a JSON object");
  CHECK(problem("options={") == "options: must be a JSON object");
  CHECK(problem("options={\"a\":" + std::string(2000, '[')) == "options: must be a JSON object");
}

TEST_CASE("explain is 1 or left out") {
  CHECK_FALSE(parse_stream_target("/v1/stream")->explain);
  CHECK(parse_stream_target("/v1/stream?explain=1")->explain);
  for (const char* wrong : {"0", "", "true", "01", "1x"})
    CHECK(problem("explain=" + std::string(wrong)) == "explain: must be 1");
  CHECK(problem("explain=1&explain=1") == "explain: given twice");
}

TEST_CASE("record is no or left out: a client cannot demand that it is recorded") {
  CHECK(parse_stream_target("/v1/stream")->record);
  CHECK_FALSE(parse_stream_target("/v1/stream?record=no")->record);
  for (const char* wrong : {"", "yes", "1", "0", "true", "false", "No", "no+"})
    CHECK(problem("record=" + std::string(wrong)) == "record: must be no");
  CHECK(problem("record=no&record=no") == "record: given twice");
}

TEST_CASE("an Open may decline to be recorded, and cannot demand it") {
  CHECK(read_open({})->record);
  CHECK_FALSE(read_open({.record = "no"})->record);
  for (const char* wrong : {"", "yes", "true"}) {
    const auto request = read_open({.record = wrong});
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().status == 400);
    CHECK(request.error().parameter == "record");
    CHECK(request.error().message == "must be no");
  }
}

TEST_CASE("a query is limited in length") {
  CHECK(status_for("/v1/stream?x=" + std::string(4096, 'y')) == 414);
  CHECK(status_for("/v1/stream?" + std::string(7000, '&')) == 200);
}

TEST_CASE("a request is unchanged when it is written and read") {
  StreamRequest request;
  request.pipeline = "vad";
  request.id = "kitchen";
  request.format = "s16le";
  request.rate = 44100;
  request.channels = 2;
  request.dim = 80;
  request.channel = "1";
  request.chunk = "100ms";
  request.options = R"({"text":"50% & more"})";
  request.record = false;
  request.explain = true;
  const auto read = parse_stream_target(stream_target(request));
  REQUIRE(read.has_value());
  CHECK(read->pipeline == request.pipeline);
  CHECK(read->id == request.id);
  CHECK(read->format == request.format);
  CHECK(read->rate == request.rate);
  CHECK(read->channels == request.channels);
  CHECK(read->dim == request.dim);
  CHECK(read->channel == request.channel);
  CHECK(read->chunk == request.chunk);
  CHECK(read->options == request.options);
  CHECK_FALSE(read->record);
  CHECK(read->explain);
}
