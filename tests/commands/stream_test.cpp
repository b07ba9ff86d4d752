// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <sndfile.h>

#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <sstream>
#include <thread>

#include "client/lines/event_lines.h"
#include "commands/console/command_line.h"
#include "tests/support/temporary_directory.h"
#include "tests/transport/sessions/server_fixture.h"

using namespace millrace;

namespace json = boost::json;

namespace {

// An echo service that runs on another thread than the command.
struct StreamCommandFixture : ServerFixture {
  StreamCommandFixture() {
    context.restart();
    thread = std::jthread([this] { context.run(); });
  }
  ~StreamCommandFixture() { stop(); }

  void stop() {
    context.stop();
    if (thread.joinable()) thread.join();
  }

  int millrace_stream(std::vector<std::string> arguments) {
    Console console{out, err};
    CommandLine program;
    add_stream_command(program, console);
    const std::string url = "ws://127.0.0.1:" + std::to_string(server.endpoint().port());
    if (std::ranges::count(arguments, "--url") == 0)
      arguments.insert(arguments.begin(), {"--url", url});
    arguments.insert(arguments.begin(), "stream");
    program.run(arguments, console);
    return console.exit_code;
  }

  std::string audio(const std::string& name, std::size_t frames, int rate = 16000, int channels = 1,
                    int subtype = SF_FORMAT_PCM_16) {
    const std::string path = directory / name;
    SF_INFO format{};
    format.samplerate = rate;
    format.channels = channels;
    format.format = SF_FORMAT_WAV | subtype;
    SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &format);
    const std::vector<short> samples(frames * static_cast<std::size_t>(channels), 7);
    sf_writef_short(file, samples.data(), static_cast<sf_count_t>(frames));
    sf_close(file);
    return path;
  }

  // The parameters of each request that the service received: "s16le 16000 1". Stops the service.
  std::vector<std::string> requests() {
    stop();
    std::vector<std::string> requests;
    for (const StreamRequest& request : admission.requests) {
      std::ostringstream words;
      words << *request.format << ' ' << *request.rate << ' ' << *request.channels;
      if (request.channel) words << " channel=" << *request.channel;
      if (request.chunk) words << " chunk=" << *request.chunk;
      if (!request.record) words << " record=no";
      requests.push_back(words.str());
    }
    return requests;
  }

  std::vector<json::object> lines() const {
    std::vector<json::object> lines;
    std::istringstream text(out.str());
    for (std::string line; std::getline(text, line);)
      lines.push_back(json::parse(line).as_object());
    return lines;
  }

  TemporaryDirectory directory;
  std::ostringstream out, err;
  std::jthread thread;
};

}  // namespace

TEST_CASE_METHOD(StreamCommandFixture,
                 "a file is streamed in packets, and every message is printed") {
  const std::string file = audio("a.wav", 4000);
  CHECK(millrace_stream({file}) == 0);
  const auto seen = lines();
  REQUIRE(seen.size() == 5);
  CHECK(seen[0].at("type") == "ready");
  for (int i = 1; i <= 3; ++i) CHECK(seen[i].at("data") == (i < 3 ? 3200 : 1600));
  CHECK(seen[4].at("type") == "closed");
  CHECK(seen[4].at("frames") == 8000);
  for (const auto& line : seen) {
    CHECK(line.at("file") == json::string_view(file));
    CHECK(line.at("stream") == "s-1");
  }
  CHECK(err.str().empty());
}

TEST_CASE_METHOD(StreamCommandFixture,
                 "files are streamed with the requested number of streams and repetitions") {
  const auto closed = [this](std::vector<std::string> arguments) {
    out.str("");
    CHECK(millrace_stream(arguments) == 0);
    return std::ranges::count_if(
        lines(), [](const json::object& line) { return line.at("type") == "closed"; });
  };
  const std::string a = audio("a.wav", 100), b = audio("b.wav", 100);
  CHECK(closed({a, b}) == 2);
  CHECK(closed({a, b, "--streams", "5"}) == 5);
  CHECK(closed({a, b, "--streams", "1"}) == 2);
  CHECK(closed({a, "--repeat", "3"}) == 3);
}

using Requests = std::vector<std::string>;

TEST_CASE_METHOD(StreamCommandFixture, "a file is sent at its own rate") {
  CHECK(
      millrace_stream({audio("cd.wav", 441, 44100), audio("call.wav", 80, 8000, 1, SF_FORMAT_ULAW),
                       "--streams", "1", "--chunk", "160ms"}) == 0);
  CHECK(err.str().empty());
  CHECK(requests() == Requests{"s16le 44100 1 chunk=160ms", "s16le 8000 1 chunk=160ms"});
}

TEST_CASE_METHOD(StreamCommandFixture, "a stream declines to be recorded with --no-record") {
  const std::string file = audio("call.wav", 80);
  CHECK(millrace_stream({file, "--no-record"}) == 0);
  CHECK(requests() == Requests{"s16le 16000 1 record=no"});
}

TEST_CASE_METHOD(StreamCommandFixture, "channels are averaged, with one notice for each file") {
  const std::string file = audio("call.wav", 100, 16000, 2);
  CHECK(millrace_stream({file, "--repeat", "2"}) == 0);
  CHECK(err.str() == "millrace stream: " + file +
                         ": notice: the channels are averaged; --split makes a stream of each, "
                         "--channel 0 selects one\n");
  CHECK(requests() == Requests(2, "s16le 16000 2 channel=mean"));
}

TEST_CASE_METHOD(StreamCommandFixture, "a pipeline of several channels gets all channels") {
  CHECK(millrace_stream({audio("a.wav", 100, 16000, 2), "--pipeline", "stereo"}) == 0);
  CHECK(err.str().empty());
  CHECK(lines().back().at("frames") == 400);
  CHECK(requests() == Requests{"s16le 16000 2 channel=mean", "s16le 16000 2"});
}

TEST_CASE_METHOD(StreamCommandFixture, "one channel of a file can be selected") {
  CHECK(millrace_stream({audio("a.wav", 100, 16000, 2), "--channel", "1"}) == 0);
  CHECK(err.str().empty());
  CHECK(requests() == Requests{"s16le 16000 2 channel=1"});
}

TEST_CASE_METHOD(StreamCommandFixture, "each channel of each file is a stream with --split") {
  const std::string call = audio("call.wav", 100, 16000, 2), mono = audio("mono.wav", 100);
  CHECK(millrace_stream({call, mono, "absent.wav", "--split", "--streams", "1"}) == 1);
  CHECK_THAT(err.str(), Catch::StartsWith("millrace stream: absent.wav: "));
  std::vector<std::string> closed;
  for (const json::object& line : lines())
    if (line.at("type") == "closed")
      closed.push_back(json::value_to<std::string>(line.at("file")) + " " +
                       (line.contains("channel") ? json::serialize(line.at("channel")) : "all"));
  CHECK(closed == std::vector{call + " 0", call + " 1", mono + " all"});
  CHECK(requests() ==
        Requests{"s16le 16000 2 channel=0", "s16le 16000 2 channel=1", "s16le 16000 1"});
}

TEST_CASE_METHOD(StreamCommandFixture, "with --opus, each message is a packet of 20 ms") {
  CHECK(millrace_stream({audio("a.wav", 1600), "--opus"}) == 0);
  CHECK(lines().size() == 8);  // ready, 5 packets, 1 of silence with the delay, closed
  CHECK(requests() == Requests{"opus 48000 1"});
}

TEST_CASE_METHOD(StreamCommandFixture, "audio that Opus cannot encode is refused") {
  CHECK(millrace_stream({audio("cd.wav", 10, 44100), "--opus"}) == 1);
  CHECK_THAT(err.str(), Catch::Contains("has 44100 Hz, and Opus encodes 8000, 12000, 16000, "
                                        "24000 or 48000 Hz: omit --opus\n"));
  CHECK(millrace_stream({audio("a.wav", 10), "--opus", "--packet", "40ms"}) == 1);
  CHECK_THAT(err.str(), Catch::EndsWith("--packet: with --opus, a message has 20ms\n"));
}

TEST_CASE_METHOD(StreamCommandFixture, "a stream that fails is reported, and the others continue") {
  CHECK(millrace_stream({audio("a.wav", 100), "absent.wav"}) == 1);
  CHECK_THAT(err.str(), Catch::StartsWith("millrace stream: absent.wav: "));
  CHECK(lines().back().at("type") == "closed");
}

TEST_CASE("an answer in bytes is a line with the bytes in base64") {
  EventLines lines("a.wav");
  const auto printed = [&](std::string bytes) {
    client_event::Result result;
    result.answer = {Answer::Kind::bytes, std::move(bytes)};
    const json::object line = json::parse(lines.line(result)).as_object();
    CHECK_FALSE(line.contains("data"));
    return std::string(line.at("bytes").as_string());
  };
  CHECK(printed("") == "");
  CHECK(printed("a") == "YQ==");
  CHECK(printed("ab") == "YWI=");
  CHECK(printed("abc") == "YWJj");
  CHECK(printed(std::string("\xff\0\xfe\x01", 4)) == "/wD+AQ==");
}

TEST_CASE_METHOD(StreamCommandFixture, "a refusal is reported with its reason") {
  CHECK(millrace_stream({audio("a.wav", 100), "--pipeline", "none"}) == 1);
  CHECK_THAT(err.str(), Catch::Contains("refused as unknown_pipeline: ") &&
                            Catch::Contains("no such pipeline"));
}

TEST_CASE_METHOD(StreamCommandFixture, "an invalid URL or packet length is refused") {
  CHECK(millrace_stream({audio("a.wav", 100), "--url", "http://here"}) == 1);
  CHECK(err.str() ==
        "millrace stream: --url: \"http://here\" must be ws://HOST:PORT, wss://HOST:PORT or "
        "tcp://HOST:PORT\n");
  err.str("");
  CHECK(millrace_stream({audio("a.wav", 100), "--packet", "100"}) == 1);
  CHECK(err.str() == "millrace stream: --packet: \"100\" must be a time such as 100ms\n");
}

TEST_CASE_METHOD(StreamCommandFixture,
                 "with --realtime a file is sent in the time of its duration") {
  const Time begin = Clock::now();
  CHECK(millrace_stream({audio("a.wav", 1600), "--realtime", "--packet", "20ms"}) == 0);
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(100));
  CHECK(lines().size() == 7);
}
