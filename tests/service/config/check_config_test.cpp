// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "input/voice_detector.h"
#include "service/config/memory_bounds.h"
#include "service/config/options.h"
#include "service/config/print_options.h"
#include "tests/commands/run_command.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using Catch::Matchers::Contains;

namespace {

// The output of the command for a file with this text.
test::CommandOutput check(const std::string& text) {
  const TemporaryDirectory directory;
  const std::string file = directory / "millrace.toml";
  std::ofstream(file) << text;
  return test::run_command(add_check_config_command, {"check-config", file});
}

std::string effective(const std::string& text) {
  const auto configuration = parse_options(text, "m.toml");
  INFO((configuration ? "" : configuration.error()));
  REQUIRE(configuration.has_value());
  return to_toml(configuration->options);
}

}  // namespace

TEST_CASE("check-config prints every value that is in force") {
  const test::CommandOutput output = check(R"([listen]
workers = "unix:/run/w.sock"
threads = 2
[[pipeline]]
name = "vad"
chunk = { preset = "silero-16k" }
)");
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  CHECK(output.out == R"([listen]
websocket = "127.0.0.1:8080"
zeromq = "tcp://127.0.0.1:5555"
admin = "127.0.0.1:9464"
workers = "unix:/run/w.sock"
threads = 2
receive_buffer = "64KiB"
plain = false
proxies = []
origins = []
names = []
try_page = false
explain = false

[access]

[limits]
profile = "private"
message = "64KiB"
text = "16KiB"
stream_buffer = "5s"
pause_buffer = "2min"
send_buffer = "64KiB"
resume = "15s"
resume_buffer = "1MiB"
connections = 10000
slab_bytes = "1GiB"
drain = "25s"
linger = "0s"
notice = "0s"

[gpu]
devices = "auto"
slab_bytes = "1GiB"
pageable = "allow"

[recording]
file_size = "256MiB"
commit = "200ms"
queue = "64MiB"
keep = "1TiB"
keep_for = "720h"
min_free = "1GiB"

[log]
level = "info"
format = "text"

[[pipeline]]
name = "vad"
rate = 16000
channels = 1
frames = "s16"
dtype = "s16"
state = "slot"
slots = 64
required = true
worker_wait = "30s"
bye_wait = "1min"
answer_wait = "10s"
first_answer_wait = "2min"
chunk = { size = 512, left = 64, right = 0, min = 0, tail = "every_start", align = "body", pad = "zero" }
batch = { rows = 16, max_wait = "2ms", width_buckets = [576] }
# frames: size 512 (32 ms), step 512 (32 ms), first 512 (32 ms), left 64 (4 ms), right 0 (0 ms); a row has 576 columns
# latency of the rule: 32 ms from the first frame of a body until its row is ready, 0 ms from the last; then at most 2ms (max_wait) if a worker is free
# memory per worker at most: frames 270 MiB, rows 26.06 MiB, slabs 72 KiB, results 76 MiB, streams 8.844 MiB

[[protocol]]
name = "openai"
pipeline = "vad"

[[protocol]]
name = "deepgram"
pipeline = "vad"

# memory at most, with 10000 connections: frames 42.03 GiB, rows 3.977 GiB, slabs 1 GiB, results 12.21 GiB, streams 20.9 GiB, sockets 3.85 GiB
)");
}

TEST_CASE("check-config reads the file of the tokens") {
  const TemporaryDirectory directory;
  const std::string file = directory / "tokens";
  const auto checked = [&] { return check("[access]\ntokens = \"" + file + "\"\n"); };
  CHECK_THAT(checked().err,
             Contains("millrace.toml: key 'access.tokens' = \"" + file + "\": cannot be read: "));
  std::ofstream(file) << "abc alice\n";
  CHECK_THAT(checked().err, Contains("line 1: must be the SHA-256 of a token"));
  CHECK(checked().exit_code == 1);
  std::ofstream(file) << std::string(64, '0') << " alice\n";
  CHECK_THAT(checked().out, Contains("[access]\ntokens = \"" + file + "\"\n"));
}

TEST_CASE("check-config reads the files of TLS, and names the key of a wrong one") {
  const TemporaryDirectory directory;
  const std::string tls =
      "[tls]\ncertificate = \"" + directory / "c" + "\"\nkey = \"" + directory / "k" + "\"\n";
  CHECK_THAT(check(tls).err, Contains("millrace.toml: key 'tls.certificate': " + directory / "c" +
                                      ": cannot be read: "));
  std::ofstream(directory / "c") << "no certificate";
  std::ofstream(directory / "k") << "no key";
  CHECK_THAT(check(tls).err, Contains("key 'tls.key': " + directory / "k" + ": has mode 0"));
  REQUIRE(::chmod((directory / "k").c_str(), 0600) == 0);
  CHECK_THAT(check(tls).err,
             Contains("key 'tls.certificate': ") && Contains("must have certificates"));
}

TEST_CASE("check-config reads the file of the resume keys") {
  const TemporaryDirectory directory;
  const std::string file = directory / "resume_key";
  const auto checked = [&] { return check("[access]\nresume_key = \"" + file + "\"\n"); };
  CHECK_THAT(checked().err, Contains("millrace.toml: key 'access.resume_key' = \"" + file +
                                     "\": cannot be read: "));
  std::ofstream(file) << std::string(64, '0');
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  CHECK_THAT(checked().err, Contains("has mode 0644"));
  CHECK(checked().exit_code == 1);
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  CHECK_THAT(checked().out, Contains("[access]\nresume_key = \"" + file + "\"\n"));
}

TEST_CASE("check-config prints the sizes and the endpoints of a pipeline") {
  const std::string keys = effective(R"([[pipeline]]
chunk = { rule = "adaptive", size = "320ms", sizes = ["80ms", "160ms", "320ms", "640ms"], right = "80ms" }
endpoint = { silence = "500ms" }
)");
  CHECK_THAT(keys, Contains(R"(rule = "adaptive", sizes = [1280, 2560, 5120, 10240] })"));
  CHECK_THAT(keys, Contains("# frames: size 5120 (320 ms) of 1280 (80 ms) to 10240 (640 ms), first "
                            "5120 (320 ms), left 0 (0 ms), right 1280 (80 ms); a row has 11520 "
                            "columns\n# latency of the rule: 160 to 720 ms from the first frame"));
  CHECK_THAT(keys, Contains("endpoint = { by = \"vad\", silence = 8000, before_speech = \"off\", "
                            "sensitivity = 2, max = 320000, on_endpoint = \"segment\" }\n"));
  CHECK_THAT(effective("[[pipeline]]\nendpoint = { by = \"worker\" }"),
             Contains("endpoint = { by = \"worker\", max = 320000, on_endpoint = \"segment\" }\n"));
}

TEST_CASE("the memory of conversion and of the voice detector counts for each stream") {
  const auto streams = [](const std::string& keys) {
    const auto read = parse_options("[[pipeline]]\nslots = 16\n" + keys, "m.toml");
    REQUIRE(read.has_value());
    return memory_bounds(read->options.pipelines[0], read->options.limits).streams / 16;
  };
  const std::size_t bare = 24 << 10;
  CHECK(streams("dim = 80") < bare + (2 << 10));
  // A client may ask for the detector.
  CHECK(streams("") > bare + VoiceDetector::bytes(16'000));
  CHECK(streams("endpoint = {}") == streams(""));
  CHECK(streams("channels = 4") > streams("channels = 3"));
}

TEST_CASE("a message counts with the frames that it has after conversion") {
  // Of each byte of mulaw at 8 kHz there are six frames of 48 kHz.
  const auto frames = [](const std::string& message, const std::string& rate) {
    const auto read = parse_options(
        "[limits]\nstream_buffer = \"1s\"\npause_buffer = \"0s\"\nmessage "
        "= \"" +
            message +
            "\"\n[[pipeline]]\nslots = 1\nchunk = { size = "
            "1000 }\nrate = " +
            rate,
        "m.toml");
    REQUIRE(read.has_value());
    return memory_bounds(read->options.pipelines[0], read->options.limits).frames;
  };
  CHECK(frames("33KiB", "48000") - frames("32KiB", "48000") == 1024 + 1024 * 6 * 2);
  CHECK(frames("33KiB", "8000") - frames("32KiB", "8000") == 1024 + 1024 * 2);
}

TEST_CASE("the frames before an acknowledgement of a client count for each stream") {
  const auto frames = [](const std::string& limits) {
    const auto read = parse_options("[limits]\n" + limits, "m.toml");
    REQUIRE(read.has_value());
    return memory_bounds(read->options.pipelines[0], read->options.limits).frames;
  };
  const std::size_t kept = frames("pause_buffer = \"0s\"\nstream_buffer = \"20200ms\"");
  CHECK(frames("pause_buffer = \"0s\"") == kept);
  CHECK(frames("pause_buffer = \"10s\"") == kept);
  CHECK(frames("pause_buffer = \"30s\"") > kept);
}

TEST_CASE("the messages that a client has not acknowledged count for each stream") {
  const auto results = [](const std::string& keys) {
    const auto read = parse_options(
        "[limits]\nconnections = 100\n" + keys + "[[pipeline]]\nslots = 16\n", "m.toml");
    REQUIRE(read.has_value());
    return std::pair{memory_bounds(read->options).results,
                     memory_bounds(read->options.pipelines[0], read->options.limits).results};
  };
  const auto [all, worker] = results("");
  CHECK(results("resume_buffer = \"3MiB\"\n") ==
        std::pair<std::size_t, std::size_t>{all + 100 * (2 << 20), worker + 16 * (2 << 20)});
}

TEST_CASE("incomplete messages of workers on other machines count as memory") {
  const std::string remote = "[listen]\nworkers_remote = \"tcp://127.0.0.1:5556\"\n";
  CHECK_THAT(effective(remote), Contains("results 13.46 GiB"));
  CHECK_THAT(effective(remote + "[limits]\nslab_bytes = \"1MiB\""), Contains("results 12.52 GiB"));
}

TEST_CASE(
    "the queue to the recorder, and a part of each stream, count as memory if a pipeline records") {
  const auto recording = [](const std::string& keys) {
    const auto read = parse_options(
        "[limits]\nconnections = 100\n[recording]\ndirectory = \"/r\"\nqueue = \"32MiB\"\nsegment "
        "= \"4MiB\"\n"
        "[[pipeline]]\nname = \"a\"\n[[pipeline]]\nname = \"b\"\nslots = 16\n" +
            keys,
        "m.toml");
    REQUIRE(read.has_value());
    return std::pair{memory_bounds(read->options).recording,
                     memory_bounds(read->options.pipelines[1], read->options.limits).recording};
  };
  CHECK(recording("") == std::pair<std::size_t, std::size_t>{0, 0});
  CHECK(recording("record = true") ==
        std::pair<std::size_t, std::size_t>{
            2 * (32 << 20) + (16 << 20) + 3 * (4 << 20) + 100 * (8 << 10), 16 * (8 << 10)});
  CHECK_THAT(effective("[recording]\ndirectory = \"/r\"\n[[pipeline]]\nrecord = true"),
             Contains("record = { share = 1, answers = false }\n") &&
                 Contains("recording 690.9 MiB, sockets"));
}

TEST_CASE("a stream without frames and results has a bound of some 45 KiB") {  // docs/sizing.md
  CHECK((bare_stream_bytes() + 512) / 1024 == 45);
}

TEST_CASE("check-config takes the file by position and by name") {
  const std::string file = "/nonexistent/m.toml";
  using Arguments = std::vector<std::string>;
  for (const auto& arguments :
       {Arguments{"check-config", file}, Arguments{"check-config", "--config", file}}) {
    const test::CommandOutput output = test::run_command(add_check_config_command, arguments);
    CHECK(output.exit_code == 1);
    CHECK_THAT(output.err, Contains("/nonexistent/m.toml: cannot be read"));
  }
}

TEST_CASE("check-config fails with one line about the error") {
  const test::CommandOutput output = check("[listen]\nthreads = 0\n");
  CHECK(output.exit_code == 1);
  CHECK(output.out == "");
  CHECK_THAT(output.err,
             Contains(".toml:2: key 'listen.threads' = 0: must be a whole number from 1 "
                      "to 1024\n"));
}
