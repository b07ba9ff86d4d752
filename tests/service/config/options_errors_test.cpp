// SPDX-License-Identifier: Apache-2.0
// Invalid configurations, and their error messages.
#include "tests/service/config/error_of.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using test::error_of;
using test::pipeline_error;

namespace {

std::string listen_error(const std::string& keys) { return error_of("[listen]\n" + keys); }
std::string gpu_error(const std::string& keys) { return error_of("[gpu]\n" + keys); }
std::string limits_error(const std::string& keys) { return error_of("[limits]\n" + keys); }

}  // namespace

TEST_CASE("an unknown key that another table has is named with this table first") {
  CHECK(pipeline_error("max_wait = \"2ms\"") ==
        "m.toml:2: key 'pipeline.max_wait' = \"2ms\": unknown; 'max_wait' is a key of "
        "'pipeline.batch'; or did you mean 'bye_wait'?");
  CHECK(pipeline_error("silence = \"1s\"") ==
        "m.toml:2: key 'pipeline.silence' = \"1s\": unknown; 'silence' is a key of "
        "'pipeline.endpoint'");
  CHECK(error_of("[listen]\nslab_bytes = \"1GiB\"") ==
        "m.toml:2: key 'listen.slab_bytes' = \"1GiB\": unknown; 'slab_bytes' is a key of 'gpu' and "
        "'limits'");
  CHECK(error_of("slots = 4\n[[pipeline]]\nname = \"asr\"") ==
        "m.toml:1: key 'slots' = 4: unknown; 'slots' is a key of 'pipeline'");
  CHECK(error_of("[limits.log]") ==
        "m.toml:1: key 'limits.log' = {}: unknown; 'log' is a key of the top level");
}

TEST_CASE("an unknown key is named, with the nearest known one") {
  CHECK(listen_error("websokcet = \"127.0.0.1:1\"") ==
        "m.toml:2: key 'listen.websokcet' = \"127.0.0.1:1\": unknown; "
        "did you mean 'websocket'?");
  CHECK(pipeline_error("slot = 4") ==
        "m.toml:2: key 'pipeline.slot' = 4: unknown; did you mean 'slots'?");
  CHECK(pipeline_error("chunk = { sise = 4 }") ==
        "m.toml:2: key 'pipeline.chunk.sise' = 4: unknown; did you mean 'size'?");
  CHECK(pipeline_error("batch = { max-wait = \"1ms\" }") ==
        "m.toml:2: key 'pipeline.batch.max-wait' = \"1ms\": unknown; did you mean 'max_wait'?");
  CHECK(error_of("[limit]\n") ==
        "m.toml:1: key 'limit' = {}: unknown; "
        "did you mean 'limits'?");
  CHECK(error_of("xyzzy = 1") ==
        "m.toml:1: key 'xyzzy' = 1: unknown; the keys here are listen, limits, gpu, log, recording "
        "and "
        "pipeline");
  CHECK(error_of("\"a\\nb\" = 1") ==
        "m.toml:1: key 'a\\u000ab' = 1: unknown; the keys here are listen, limits, gpu, log, "
        "recording and "
        "pipeline");
}

TEST_CASE("a wrong type is named with what is allowed") {
  CHECK(error_of("listen = 4") == "m.toml:1: key 'listen' = 4: must be a table, headed [listen]");
  CHECK(error_of("[pipeline]") ==
        "m.toml:1: key 'pipeline' = {}: must be tables, each headed [[pipeline]]");
  CHECK(error_of("pipeline = []") ==
        "m.toml:1: key 'pipeline' = []: must have at least one [[pipeline]]");
  CHECK(error_of("pipeline = [1]") ==
        "m.toml:1: key 'pipeline' = [1]: must be tables, each headed [[pipeline]]");
  CHECK(listen_error("websocket = 8080") ==
        "m.toml:2: key 'listen.websocket' = 8080: must be a string in quotes");
  CHECK(listen_error("plain = 1") == "m.toml:2: key 'listen.plain' = 1: must be true or false");
  CHECK(listen_error("threads = \"2\"") ==
        "m.toml:2: key 'listen.threads' = \"2\": must be a whole number from 1 to 1024");
  CHECK(pipeline_error("slots = 1.5") ==
        "m.toml:2: key 'pipeline.slots' = 1.5: must be a whole number from 1 to 65536");
  CHECK(pipeline_error("slots = 1979-05-27") ==
        "m.toml:2: key 'pipeline.slots' = a date or time: must be a whole number from 1 to 65536");
  CHECK(pipeline_error("chunk = \"100ms\"") ==
        "m.toml:2: key 'pipeline.chunk' = \"100ms\": must be a table, like { size = \"100ms\" }");
  CHECK(pipeline_error("chunk = { size = true }") ==
        "m.toml:2: key 'pipeline.chunk.size' = true: must be a string or a whole number");
  CHECK(pipeline_error("batch = { row_buckets = [1, \"8\"] }") ==
        "m.toml:2: key 'pipeline.batch.row_buckets' = [1, \"8\"]: "
        "must be whole numbers above 0, like [1, 8, 16]");
}

TEST_CASE("a value out of range is named with the range") {
  CHECK(listen_error("threads = 0") ==
        "m.toml:2: key 'listen.threads' = 0: must be a whole number from 1 to 1024");
  CHECK(pipeline_error("slots = -1") ==
        "m.toml:2: key 'pipeline.slots' = -1: must be a whole number from 1 to 65536");
  CHECK(pipeline_error("rate = 0") ==
        "m.toml:2: key 'pipeline.rate' = 0: must be a number above 0, at most 1000000");
  CHECK(pipeline_error("rate = nan") ==
        "m.toml:2: key 'pipeline.rate' = nan: must be a number above 0, at most 1000000");
  CHECK(pipeline_error("rate = 22050.5") ==
        "m.toml:2: key 'pipeline.rate' = 22050.5: must be a whole number of audio samples per "
        "second");
  CHECK(pipeline_error("rate = 0.5") ==
        "m.toml:2: key 'pipeline.rate' = 0.5: must be a whole number of audio samples per second");
  CHECK(pipeline_error("channels = 0") ==
        "m.toml:2: key 'pipeline.channels' = 0: must be a whole number from 1 to 256");
  CHECK(pipeline_error("dim = 0") ==
        "m.toml:2: key 'pipeline.dim' = 0: must be a whole number from 1 to 65535");
  CHECK(pipeline_error("batch = { rows = 0 }") ==
        "m.toml:2: key 'pipeline.batch.rows' = 0: must be a whole number from 1 to 65536");
  CHECK(pipeline_error("name = \"\"") ==
        "m.toml:2: key 'pipeline.name' = \"\": must be 1 to 128 characters of A-Z a-z 0-9 . _ -");
  CHECK(pipeline_error("name = \"a{b=\\\"c\\\"}\"") ==
        "m.toml:2: key 'pipeline.name' = \"a{b=\\\"c\\\"}\": "
        "must be 1 to 128 characters of A-Z a-z 0-9 . _ -");
  CHECK(pipeline_error("frames = \"s24\"") ==
        "m.toml:2: key 'pipeline.frames' = \"s24\": must be \"s16\", \"f32\" or \"f16\"");
  CHECK(pipeline_error("state = \"some\"") ==
        "m.toml:2: key 'pipeline.state' = \"some\": must be \"slot\" or \"none\"");
}

TEST_CASE("a time or a size without its unit is named") {
  const std::string time = "must be a time with its unit (us, ms, s, min, h), like \"2ms\", from ";
  CHECK(pipeline_error("worker_wait = 30") ==
        "m.toml:2: key 'pipeline.worker_wait' = 30: " + time + "0s to 1h");
  CHECK(pipeline_error("worker_wait = \"30\"") ==
        "m.toml:2: key 'pipeline.worker_wait' = \"30\": " + time + "0s to 1h");
  CHECK(pipeline_error("bye_wait = \"-1s\"") ==
        "m.toml:2: key 'pipeline.bye_wait' = \"-1s\": " + time + "0s to 1h");
  CHECK(pipeline_error("batch = { max_wait = \"2 m\" }") ==
        "m.toml:2: key 'pipeline.batch.max_wait' = \"2 m\": " + time + "0s to 1min");
  CHECK(limits_error("slab_bytes = \"64MB\"") ==
        "m.toml:2: key 'limits.slab_bytes' = \"64MB\": "
        "must be a size with its unit (B, KiB, MiB, GiB, TiB), like \"64KiB\", from 1MiB to 1TiB");
  CHECK(limits_error("message = \"2MiB\"") ==
        "m.toml:2: key 'limits.message' = \"2MiB\": "
        "must be a size with its unit (B, KiB, MiB, GiB, TiB), like \"64KiB\", from 1KiB to 1MiB");
}

TEST_CASE("an impossible chunk rule is an error with the chunker's message") {
  CHECK(pipeline_error("chunk = { size = 0 }") ==
        "m.toml:2: key 'pipeline.chunk.size' = 0: must be at least 1 frame");
  CHECK(pipeline_error("chunk = { size = \"33m\" }") ==
        "m.toml:2: key 'pipeline.chunk.size' = \"33m\": must be frames from 0 to 2147483647 "
        "(1600), or a time in us, ms, s, min or h without a space (\"100ms\", \"0.1s\")");
  CHECK(pipeline_error("rate = 11025\nchunk = { size = \"1ms\" }") ==
        "m.toml:3: key 'pipeline.chunk.size' = \"1ms\": must be whole frames, at most 2147483647: "
        "at 11025 frames per second it is 11.025");
  CHECK(pipeline_error("chunk = { size = 4, tail = \"keep\" }") ==
        "m.toml:2: key 'pipeline.chunk.tail' = \"keep\": must be every_start, cover or drop");
  CHECK(pipeline_error("chunk = { left = 4 }") ==
        "m.toml:2: key 'pipeline.chunk.size': size is missing: "
        "a chunk rule needs size or preset");
  CHECK(pipeline_error("dim = 80\nrate = 12.5") ==
        "m.toml:1: key 'pipeline.chunk': the default is { size = \"100ms\" }, which must be whole "
        "frames, at most 2147483647: at 12.5 frames per second it is 1.25");
}

TEST_CASE("a stream can hold the longest packet of Opus") {
  CHECK(limits_error("stream_buffer = \"120ms\"") == "no error");
  CHECK(
      limits_error("stream_buffer = \"119ms\"") ==
      "m.toml:2: key 'limits.stream_buffer' = \"119ms\": must be a time with its unit (us, ms, s, "
      "min, h), like \"2ms\", from 120ms to 10min");
}

TEST_CASE("a number with a decimal point is shown with it") {
  CHECK(limits_error("connections = 5.0") ==
        "m.toml:2: key 'limits.connections' = 5.0: must be a whole number from 1 to 1000000");
}

TEST_CASE("a frame that fits into no message is named with the limit") {
  CHECK(
      pipeline_error("dim = 16385\nchunk = { size = 2 }\nslots = 2") ==
      "m.toml:2: key 'pipeline.dim' = 16385: a frame takes 65540 bytes as f32; it must be at most "
      "limits.message, which is 64KiB");
  CHECK(pipeline_error("dim = 16384\nchunk = { size = 2 }\nslots = 2") == "no error");
  CHECK(error_of("[limits]\nmessage = \"1KiB\"\n[[pipeline]]\nchannels = 256") == "no error");
}

TEST_CASE("a key with too many dots is an error with its line") {
  std::string dots;
  for (int i = 0; i < 100'000; ++i) dots += "a.";
  const std::string deep = "more than 64 dots in the keys of a line";
  CHECK(error_of("[listen]\n[" + dots + "b]") == "m.toml:2: " + deep);
  CHECK(error_of(dots + "b = 1") == "m.toml:1: " + deep);
  CHECK(error_of("x = {" + dots + "b = 1}") == "m.toml:1: " + deep);
  // Dots in a string or a comment are not counted.
  CHECK(error_of("# " + dots + "\nx = \"\\\"" + dots + "\"").find(deep) == std::string::npos);
  CHECK(error_of("x = '" + dots + "'").find(deep) == std::string::npos);
  std::string nested = "x = ";
  for (int i = 0; i < 1000; ++i) nested += "[\n";
  CHECK(error_of(nested).find('\n') == std::string::npos);
}

TEST_CASE("each of many pipelines is read once") {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "[[pipeline]]\nname = \"p" + std::to_string(i) + "\"\n";
  CHECK(error_of(text).ends_with("the rest of limits.slab_bytes"));
  CHECK(error_of("[limits]\nslab_bytes = \"1TiB\"\n[gpu]\ndevices = \"host\"\n" + text) ==
        "no error");
}

TEST_CASE("linger and notice that leave too little of drain are an error") {
  CHECK(limits_error("drain = \"20s\"\nlinger = \"5s\"\nnotice = \"10s\"") == "no error");
  CHECK(limits_error("drain = \"20s\"\nlinger = \"5s\"\nnotice = \"11s\"") ==
        "m.toml:4: key 'limits.notice' = \"11s\": linger and notice are parts of drain, which is "
        "20s: together they must be at most three quarters of it");
  CHECK_THAT(limits_error("linger = \"20s\""),
             Contains("key 'limits.linger' = \"20s\": linger and notice are parts of drain, which "
                      "is 25s"));
}

TEST_CASE("a contradiction is an error that names the other key") {
  CHECK(pipeline_error("dim = 80\nchannels = 2") ==
        "m.toml:2: key 'pipeline.dim' = 80: cannot be combined with channels: "
        "frames are features (dim) or audio (channels)");
  CHECK(pipeline_error("frames = \"f32\"\ndtype = \"s16\"") ==
        "m.toml:3: key 'pipeline.dtype' = \"s16\": must be \"f32\", like frames: "
        "only s16 frames are converted");
  CHECK(pipeline_error("batch = { rows = 16, row_buckets = [1, 8] }") ==
        "m.toml:2: key 'pipeline.batch.row_buckets' = [1, 8]: "
        "the last value must be rows, which is 16");
  CHECK(pipeline_error("batch = { row_buckets = [8, 1, 16] }") ==
        "m.toml:2: key 'pipeline.batch.row_buckets' = [8, 1, 16]: must be in ascending order");
  CHECK(pipeline_error("batch = { width_buckets = [800, 800, 1600] }") ==
        "m.toml:2: key 'pipeline.batch.width_buckets' = [800, 800, 1600]: "
        "must be in ascending order");
  CHECK(pipeline_error(
            "batch = { width_buckets = [800, 1600] }\nchunk = { size = 1599, left = 2 }") ==
        "m.toml:2: key 'pipeline.batch.width_buckets' = [800, 1600]: "
        "the last value must be at least the width of the widest row, which is 1601");
  CHECK_THAT(pipeline_error("batch = { width_buckets = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
                            "14, 15, 16, 1600] }"),
             Catch::EndsWith(": must have at most 16 values"));
  CHECK(pipeline_error("slots = 8\nbatch = { rows = 16 }") ==
        "m.toml:3: key 'pipeline.batch.rows' = 16: must be at most slots, which is 8: "
        "a stream has at most one row in a batch");
  CHECK(pipeline_error("chunk = { size = \"6s\" }") ==
        "m.toml:2: key 'pipeline.chunk' = {size = \"6s\"}: a window has 96000 frames; "
        "it must have at most 80000, as limits.stream_buffer is 5s");
  CHECK(error_of("[[pipeline]]\nshed_after = \"4s\"") ==
        "m.toml:2: key 'pipeline.shed_after' = \"4s\": needs limits.stream_buffer of at least "
        "5350ms; it is 5s");
  CHECK(error_of("[limits]\nstream_buffer = \"6s\"\n[[pipeline]]\nchunk = { size = \"6s\" }") ==
        "no error");
  CHECK(pipeline_error("channels = 256\nslots = 4096\nbatch = { rows = 4096 }") ==
        "m.toml:4: key 'pipeline.batch' = {rows = 4096}: the slabs of one worker take 9.375 GiB; "
        "must be at most 1 GiB, the rest of limits.slab_bytes");
  CHECK(error_of("[[pipeline]]\nname = \"a\"\n[[pipeline]]\nname = \"b\"\n"
                 "[[pipeline]]\nname = \"a\"\n") ==
        "m.toml:6: key 'pipeline.name' = \"a\": must differ from the names of the pipelines before "
        "it");
}

TEST_CASE("a key that is not implemented and cannot be ignored safely is an error") {
  CHECK(limits_error("profile = \"public\"") ==
        "m.toml:2: key 'limits.profile' = \"public\": not implemented yet, and cannot be ignored: "
        "limits per peer and per second would be missing");
  CHECK(limits_error("profile = \"private\"") == "no error");
}

TEST_CASE("invalid devices are named with the allowed values") {
  const std::string allowed =
      ": must be \"auto\", \"host\", or a list of devices, each once, like [\"cuda:0\"] or "
      "[\"GPU-...\"]";
  for (const std::string devices :
       {"\"cuda:0\"", "0", "true", "[]", "[0]", "[\"host\"]", "[\"auto\"]", "[\"cuda:\"]",
        "[\"cuda:x\"]", "[\"cuda:1234\"]", "[\"cuda:0\", \"cuda:1\", \"cuda:0\"]"})
    CHECK(gpu_error("devices = " + devices) ==
          "m.toml:2: key 'gpu.devices' = " + devices + allowed);
  CHECK(gpu_error("device = \"host\"") ==
        "m.toml:2: key 'gpu.device' = \"host\": unknown; did you mean 'devices'?");
  CHECK(error_of("gpu = 1") == "m.toml:1: key 'gpu' = 1: must be a table, headed [gpu]");
  CHECK(gpu_error("pageable = true") ==
        "m.toml:2: key 'gpu.pageable' = true: must be \"allow\" or \"refuse\"");
  CHECK(gpu_error("slab_bytes = 1024") ==
        "m.toml:2: key 'gpu.slab_bytes' = 1024: must be a size with its unit (B, KiB, MiB, GiB, "
        "TiB), like \"64KiB\", from 2MiB to 1TiB");
}

TEST_CASE("[gpu] slab_bytes must hold the slabs of a worker") {
  const std::string keys =
      "slab_bytes = \"2MiB\"\n[[pipeline]]\nname = \"wide\"\nchannels = 16\nchunk = { size = "
      "1600 }\n";
  CHECK(gpu_error(keys) ==
        "m.toml:2: key 'gpu.slab_bytes' = \"2MiB\": must be at least 4 MiB, the slabs of one "
        "worker of pipeline wide");
  CHECK(gpu_error("devices = \"host\"\n" + keys) == "no error");
}

TEST_CASE("origins must have the form in which browsers send them") {
  CHECK(listen_error(R"(origins = ["https://app.example", "http://127.0.0.1:8000", "app://x"])") ==
        "no error");
  for (const char* bad :
       {R"("https://app.example")", R"(["null"])", R"(["*"])", R"(["app.example"])",
        R"(["https://app.example/"])", R"(["https://App.example"])", R"([1])"})
    CHECK_THAT(listen_error("origins = " + std::string(bad)),
               Catch::Contains("must be a list of origins in lower case without a path"));
}

TEST_CASE("listeners must be on loopback, and each on a different address") {
  CHECK(listen_error("websocket = \"0.0.0.0:8080\"") ==
        "m.toml:2: key 'listen.websocket' = \"0.0.0.0:8080\": must be on loopback "
        "(127.0.0.1, [::1]); other addresses need plain = true");
  CHECK(listen_error("websocket = \"0.0.0.0:8080\"\nplain = true") == "no error");
  CHECK(listen_error("websocket = \"127.0.0.1:9464\"") ==
        "m.toml:2: key 'listen.websocket' = \"127.0.0.1:9464\": must differ from admin, "
        "which is 127.0.0.1:9464");
  CHECK(listen_error("admin = \"127.0.0.1:8080\"\nwebsocket = \"127.0.0.1:8080\"") ==
        "m.toml:3: key 'listen.websocket' = \"127.0.0.1:8080\": must differ from admin, "
        "which is 127.0.0.1:8080");
  CHECK(listen_error("admin = \"127.0.0.1:0\"\nwebsocket = \"127.0.0.1:0\"") == "no error");
  CHECK(listen_error("zeromq = \"127.0.0.1:5555\"") ==
        "m.toml:2: key 'listen.zeromq' = \"127.0.0.1:5555\": must be \"off\" or "
        "tcp://ADDRESS:PORT, like tcp://127.0.0.1:5555");
  CHECK(listen_error("zeromq = \"ipc:///run/millrace.sock\"") ==
        "m.toml:2: key 'listen.zeromq' = \"ipc:///run/millrace.sock\": must be "
        "\"off\" or tcp://ADDRESS:PORT, like tcp://127.0.0.1:5555");
  CHECK(listen_error("zeromq = \"tcp://0.0.0.0:5555\"") ==
        "m.toml:2: key 'listen.zeromq' = \"tcp://0.0.0.0:5555\": must be on loopback "
        "(127.0.0.1, [::1]); other addresses need plain = true");
  CHECK(listen_error("zeromq = \"tcp://127.0.0.1:8080\"") ==
        "m.toml:1: key 'listen.websocket': must differ from zeromq, which is 127.0.0.1:8080");
  CHECK(listen_error("admin = \"example.org:80\"") ==
        "m.toml:2: key 'listen.admin' = \"example.org:80\": must be an address and a port, "
        "like 127.0.0.1:8080");
  CHECK(listen_error("workers = \"/run/x\"") ==
        "m.toml:2: key 'listen.workers' = \"/run/x\": must be unix:PATH, with a path of 1 to "
        "107 bytes");
}

TEST_CASE("text that is not TOML is an error with its line") {
  CHECK(error_of("a = 1\na = 2").starts_with("m.toml:2: "));
  CHECK(error_of("[listen\n").starts_with("m.toml:1: "));
  CHECK(error_of(std::string("\0", 1)).starts_with("m.toml:1: "));
  for (const std::string text : {"a = 1\na = 2", "[listen\n", "x = \"\n\""})
    CHECK(error_of(text).find('\n') == std::string::npos);
}

TEST_CASE("a file that cannot be read is named") {
  const auto missing = load_options("/nonexistent/m.toml");
  REQUIRE(missing.has_error());
  CHECK(missing.error() == "/nonexistent/m.toml: cannot be read: No such file or directory");
  const auto directory = load_options("/");
  REQUIRE(directory.has_error());
  CHECK(directory.error() == "/: is a directory");
}
