// SPDX-License-Identifier: Apache-2.0
// Invalid configurations, and their error messages.
#include "tests/service/config/error_of.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using test::allowed;
using test::error_of;
using test::pipeline_error;

namespace {

std::string whole(int least, int most) {
  return "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

TEST_CASE("an unknown key that another table has is named with this table first") {
  CHECK(allowed("pipeline", "max_wait", "\"2ms\"") ==
        "unknown; 'max_wait' is a key of 'pipeline.batch'; or did you mean 'bye_wait'?");
  CHECK(allowed("pipeline", "silence", "\"1s\"") ==
        "unknown; 'silence' is a key of 'pipeline.endpoint'");
  CHECK(allowed("listen", "slab_bytes", "\"1GiB\"") ==
        "unknown; 'slab_bytes' is a key of 'gpu' and 'limits'");
  CHECK(error_of("slots = 4\n[[pipeline]]\nname = \"asr\"") ==
        "m.toml:1: key 'slots' = 4: unknown; 'slots' is a key of 'pipeline'");
  CHECK(error_of("[limits.log]") ==
        "m.toml:1: key 'limits.log' = {}: unknown; 'log' is a key of the top level");
}

TEST_CASE("an unknown key is named, with the nearest known one") {
  CHECK(allowed("pipeline", "slot", "4") == "unknown; did you mean 'slots'?");
  CHECK(allowed("pipeline", "chunk.sise", "4") == "unknown; did you mean 'size'?");
  CHECK(allowed("gpu", "device", "\"host\"") == "unknown; did you mean 'devices'?");
  CHECK(error_of("[limit]\n") == "m.toml:1: key 'limit' = {}: unknown; did you mean 'limits'?");
  CHECK(
      error_of("\"a\\nb\" = 1") ==
      "m.toml:1: key 'a\\u000ab' = 1: unknown; the keys here are tls, listen, access, limits, gpu, "
      "log, recording, pipeline and protocol");
}

TEST_CASE("a protocol has a known name, and pipelines of the service") {
  const std::string two = "[[pipeline]]\nname = \"a\"\n[[pipeline]]\nname = \"b\"\n[[protocol]]\n";
  CHECK(error_of(two + "name = \"openai\"") == "no error");
  CHECK(error_of(two + "name = \"gopher\"") ==
        "m.toml:6: key 'protocol.name' = \"gopher\": must be \"openai\" or \"deepgram\"");
  CHECK(error_of(two) == "m.toml:5: key 'protocol.name': must be \"openai\" or \"deepgram\"");
  CHECK(error_of(two + "name = \"openai\"\npipeline = \"c\"") ==
        "m.toml:7: key 'protocol.pipeline' = \"c\": must be the name of a [[pipeline]]");
  CHECK(error_of(two + "name = \"openai\"\nmodels = { x = \"c\" }") ==
        "m.toml:7: key 'protocol.models' = {x = \"c\"}: each value must be the name of a "
        "[[pipeline]]: there is no c");
  CHECK(error_of(two + "name = \"openai\"\nmodels = { x = 1 }") ==
        "m.toml:7: key 'protocol.models' = {x = 1}: must be a table like { \"whisper\" = "
        "\"english\" }");
}

TEST_CASE("two protocols share no path and no address") {
  const std::string openai = "[[protocol]]\nname = \"openai\"\n";
  CHECK(error_of(openai + openai) ==
        "m.toml:4: key 'protocol.name' = \"openai\": a protocol of this name has no listen either: "
        "its path is in use");
  CHECK(error_of(openai + "listen = \"127.0.0.1:8080\"") ==
        "m.toml:3: key 'protocol.listen' = \"127.0.0.1:8080\": must differ from listen.websocket, "
        "which is 127.0.0.1:8080");
  CHECK(
      error_of(openai + "listen = \"127.0.0.1:9000\"\n" + openai + openai +
               "listen = \"0.0.0.0:9000\"")
          .starts_with("m.toml:8: key 'protocol.listen' = \"0.0.0.0:9000\": must be on loopback"));
}

TEST_CASE("a wrong type is named with what is allowed") {
  const std::string tables = ": must be tables, each headed [[pipeline]]";
  CHECK(error_of("listen = 4") == "m.toml:1: key 'listen' = 4: must be a table, headed [listen]");
  CHECK(error_of("gpu = 1") == "m.toml:1: key 'gpu' = 1: must be a table, headed [gpu]");
  CHECK(error_of("[pipeline]") == "m.toml:1: key 'pipeline' = {}" + tables);
  CHECK(error_of("pipeline = [1]") == "m.toml:1: key 'pipeline' = [1]" + tables);
  CHECK(error_of("pipeline = []") ==
        "m.toml:1: key 'pipeline' = []: must have at least one [[pipeline]]");
  CHECK(allowed("listen", "websocket", "8080") == "must be a string in quotes");
  CHECK(allowed("listen", "plain", "1") == "must be true or false");
  CHECK(allowed("listen", "threads", "\"2\"") == whole(1, 1024));
  CHECK(allowed("pipeline", "slots", "1.5") == whole(1, 65536));
  CHECK(error_of("[[pipeline]]\nslots = 1979-05-27") ==
        "m.toml:2: key 'pipeline.slots' = a date or time: " + whole(1, 65536));
  CHECK(allowed("limits", "connections", "5.0") == whole(1, 1'000'000));
  CHECK(allowed("pipeline", "chunk", "\"100ms\"") == "must be a table, like { size = \"100ms\" }");
  CHECK(allowed("pipeline", "chunk.size", "true") == "must be a string or a whole number");
  CHECK(allowed("pipeline", "batch.row_buckets", "[1, \"8\"]") ==
        "must be whole numbers above 0, like [1, 8, 16]");
}

TEST_CASE("a value out of range is named with the range") {
  const std::string rate = "must be a number above 0, at most 1000000";
  const std::string audio_rate = "must be a whole number of audio samples per second";
  CHECK(allowed("listen", "threads", "0") == whole(1, 1024));
  CHECK(allowed("pipeline", "slots", "-1") == whole(1, 65536));
  CHECK(allowed("pipeline", "rate", "0") == rate);
  CHECK(allowed("pipeline", "rate", "nan") == rate);
  CHECK(allowed("pipeline", "rate", "22050.5") == audio_rate);
  CHECK(allowed("pipeline", "rate", "0.5") == audio_rate);
  CHECK(allowed("pipeline", "channels", "0") == whole(1, 256));
  CHECK(allowed("pipeline", "dim", "0") == whole(1, 65535));
  CHECK(allowed("pipeline", "batch.rows", "0") == whole(1, 65536));
  for (const std::string name : {R"("")", R"("a{b=\"c\"}")"})
    CHECK(allowed("pipeline", "name", name) == "must be 1 to 128 characters of A-Z a-z 0-9 . _ -");
  CHECK(allowed("pipeline", "frames", "\"s24\"") == R"(must be "s16", "f32" or "f16")");
  CHECK(allowed("pipeline", "state", "\"some\"") == R"(must be "slot" or "none")");
}

TEST_CASE("a time or a size without its unit is named") {
  const std::string time = "must be a time with its unit (us, ms, s, min, h), like \"2ms\", from ";
  const std::string size =
      "must be a size with its unit (B, KiB, MiB, GiB, TiB), like \"64KiB\", from ";
  CHECK(allowed("pipeline", "worker_wait", "30") == time + "0s to 1h");
  CHECK(allowed("pipeline", "worker_wait", "\"30\"") == time + "0s to 1h");
  CHECK(allowed("pipeline", "bye_wait", "\"-1s\"") == time + "0s to 1h");
  CHECK(allowed("pipeline", "answer_wait", "\"99ms\"") == time + "100ms to 1h");
  CHECK(allowed("pipeline", "first_answer_wait", "\"2h\"") == time + "100ms to 1h");
  CHECK(allowed("pipeline", "batch.max_wait", "\"2 m\"") == time + "0s to 1min");
  // A stream can hold the longest packet of Opus.
  CHECK(allowed("limits", "stream_buffer", "\"120ms\"") == "no error");
  CHECK(allowed("limits", "stream_buffer", "\"119ms\"") == time + "120ms to 10min");
  for (const std::string out : {"\"999ms\"", "\"601s\"", "\"0s\""})
    CHECK(allowed("limits", "resume", out) == time + "1s to 10min");
  for (const std::string out : {"\"63KiB\"", "\"65MiB\"", "\"0B\""})
    CHECK(allowed("limits", "resume_buffer", out) == size + "64KiB to 64MiB");
  CHECK(allowed("limits", "slab_bytes", "\"64MB\"") == size + "1MiB to 1TiB");
  CHECK(allowed("limits", "message", "\"2MiB\"") == size + "1KiB to 1MiB");
  CHECK(allowed("gpu", "slab_bytes", "\"1KiB\"") == size + "2MiB to 1TiB");
}

TEST_CASE("an impossible chunk rule is an error with the chunker's message") {
  CHECK(allowed("pipeline", "chunk.size", "0") == "must be at least 1 frame");
  CHECK(allowed("pipeline", "chunk.size", "\"33m\"") ==
        "must be frames from 0 to 2147483647 (1600), or a time in us, ms, s, min or h without a "
        "space (\"100ms\", \"0.1s\")");
  CHECK(allowed("pipeline", "chunk.size", "\"1ms\"", "rate = 11025") ==
        "must be whole frames, at most 2147483647: at 11025 frames per second it is 11.025");
  CHECK(allowed("pipeline", "chunk.tail", "\"keep\"", "chunk.size = 4") ==
        "must be every_start, cover or drop");
  CHECK(pipeline_error("chunk = { left = 4 }") ==
        "m.toml:2: key 'pipeline.chunk.size': size is missing: "
        "a chunk rule needs size or preset");
  CHECK(pipeline_error("dim = 80\nrate = 12.5") ==
        "m.toml:1: key 'pipeline.chunk': the default is { size = \"100ms\" }, which must be whole "
        "frames, at most 2147483647: at 12.5 frames per second it is 1.25");
}

TEST_CASE("a frame that fits into no message is named with the limit") {
  const std::string others = "chunk = { size = 2 }\nslots = 2";
  CHECK(allowed("pipeline", "dim", "16385", others) ==
        "a frame takes 65540 bytes as f32; it must be at most limits.message, which is 64KiB");
  CHECK(allowed("pipeline", "dim", "16384", others) == "no error");
  CHECK(error_of("[limits]\nmessage = \"1KiB\"\n[[pipeline]]\nchannels = 256") == "no error");
  CHECK(error_of("[limits]\nmessage = \"8KiB\"\ntext = \"9KiB\"") ==
        "m.toml:3: key 'limits.text' = \"9KiB\": must be a size with its unit (B, KiB, MiB, GiB, "
        "TiB), like \"64KiB\", from 1KiB to 8KiB");
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
  const std::string parts = "linger and notice are parts of drain, which is ";
  const std::string most = ": together they must be at most three quarters of it";
  const std::string others = "drain = \"20s\"\nlinger = \"5s\"";
  CHECK(allowed("limits", "notice", "\"10s\"", others) == "no error");
  CHECK(allowed("limits", "notice", "\"11s\"", others) == parts + "20s" + most);
  CHECK(allowed("limits", "linger", "\"20s\"") == parts + "25s" + most);
}

TEST_CASE("a contradiction is an error that names the other key") {
  CHECK(allowed("pipeline", "dim", "80", "channels = 2") ==
        "cannot be combined with channels: frames are features (dim) or audio (channels)");
  CHECK(allowed("pipeline", "dtype", "\"s16\"", "frames = \"f32\"") ==
        "must be \"f32\", like frames: only s16 frames are converted");
  CHECK(allowed("pipeline", "batch.row_buckets", "[1, 8]", "batch.rows = 16") ==
        "the last value must be rows, which is 16");
  CHECK(allowed("pipeline", "batch.row_buckets", "[8, 1, 16]") == "must be in ascending order");
  CHECK(allowed("pipeline", "batch.width_buckets", "[800, 800, 1600]") ==
        "must be in ascending order");
  CHECK(allowed("pipeline", "batch.width_buckets", "[800, 1600]",
                "chunk = { size = 1599, left = 2 }") ==
        "the last value must be at least the width of the widest row, which is 1601");
  CHECK_THAT(pipeline_error("batch = { width_buckets = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
                            "14, 15, 16, 1600] }"),
             Catch::EndsWith(": must have at most 16 values"));
  CHECK(allowed("pipeline", "batch.rows", "16", "slots = 8") ==
        "must be at most slots, which is 8: a stream has at most one row in a batch");
  CHECK(allowed("pipeline", "chunk", "{size = \"6s\"}") ==
        "a window has 96000 frames; it must have at most 80000, as limits.stream_buffer is 5s");
  CHECK(allowed("pipeline", "chunk", "{size = \"6s\"}", "[limits]\nstream_buffer = \"6s\"") ==
        "no error");
  CHECK(allowed("pipeline", "shed_after", "\"4s\"") ==
        "needs limits.stream_buffer of at least 5350ms; it is 5s");
  CHECK(allowed("pipeline", "batch", "{rows = 4096}", "channels = 256\nslots = 4096") ==
        "the slabs of one worker take 9.375 GiB; must be at most 1 GiB, the rest of "
        "limits.slab_bytes");
  CHECK(error_of("[[pipeline]]\nname = \"a\"\n[[pipeline]]\nname = \"b\"\n"
                 "[[pipeline]]\nname = \"a\"\n") ==
        "m.toml:6: key 'pipeline.name' = \"a\": must differ from the names of the pipelines before "
        "it");
}

TEST_CASE("a protection that does not exist is refused, not ignored") {
  for (const std::string key : {"per_address", "opens", "rate"})
    CHECK_THAT(allowed("limits", key, "\"20/s\""), Catch::StartsWith("unknown; "));
}

TEST_CASE("a public service needs encryption and clients that it knows") {
  const std::string profile = "[limits]\nprofile = \"public\"\n";
  const std::string tenants = "[access]\ntenants = \"t\"\n";
  const std::string tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
  CHECK(allowed("limits", "profile", "\"open\"") == "must be \"private\" or \"public\"");
  CHECK_THAT(error_of(tls + profile), Catch::EndsWith("public needs [access] tenants, so that it "
                                                      "knows its clients"));
  CHECK(error_of(tenants + profile) ==
        "m.toml:4: key 'limits.profile' = \"public\": public needs [tls], or [listen] plain = true "
        "behind a proxy with TLS");
  CHECK(error_of("[listen]\nplain = true\n" + tenants + profile) == "no error");
  CHECK(error_of(tls + tenants + profile) == "no error");
}

TEST_CASE("proxies are networks and addresses") {
  const std::string must =
      R"(must be a list of networks and addresses, like ["10.0.0.0/8", "fd00::/8", "192.0.2.7"])";
  CHECK(allowed("listen", "proxies", R"(["10.0.0.0/8", "::1"])") == "no error");
  for (const char* value :
       {R"("10.0.0.0/8")", R"(["10.0.0.1/8"])", R"(["proxy.example"])", "[10]", "true"})
    CHECK(allowed("listen", "proxies", value) == must);
}

TEST_CASE("invalid devices are named with the allowed values") {
  for (const std::string devices :
       {"\"cuda:0\"", "0", "true", "[]", "[0]", "[\"host\"]", "[\"auto\"]", "[\"cuda:\"]",
        "[\"cuda:x\"]", "[\"cuda:1234\"]", "[\"cuda:0\", \"cuda:1\", \"cuda:0\"]"})
    CHECK(allowed("gpu", "devices", devices) ==
          "must be \"auto\", \"host\", or a list of devices, each once, like [\"cuda:0\"] or "
          "[\"GPU-...\"]");
  CHECK(allowed("gpu", "pageable", "true") == R"(must be "allow" or "refuse")");
}

TEST_CASE("[gpu] slab_bytes must hold the slabs of a worker") {
  const std::string wide =
      "\n[[pipeline]]\nname = \"wide\"\nchannels = 16\nchunk = { size = 1600 }\n";
  CHECK(allowed("gpu", "slab_bytes", "\"2MiB\"", wide) ==
        "must be at least 4 MiB, the slabs of one worker of pipeline wide");
  CHECK(allowed("gpu", "slab_bytes", "\"2MiB\"", "devices = \"host\"" + wide) == "no error");
}

TEST_CASE("origins must have the form in which browsers send them") {
  CHECK(allowed("listen", "origins",
                R"(["https://app.example", "http://127.0.0.1:8000", "app://x"])") == "no error");
  for (const char* bad :
       {R"("https://app.example")", R"(["null"])", R"(["*"])", R"(["app.example"])",
        R"(["https://app.example/"])", R"(["https://App.example"])", R"([1])"})
    CHECK_THAT(allowed("listen", "origins", bad),
               Catch::StartsWith("must be a list of origins in lower case without a path"));
}

TEST_CASE("listeners must be on loopback, and each on a different address") {
  const std::string loopback =
      "must be on loopback (127.0.0.1, [::1]); other addresses need plain = true";
  const std::string zeromq = "must be \"off\" or tcp://ADDRESS:PORT, like tcp://127.0.0.1:5555";
  const std::string tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
  const std::string listen = "[listen]\nworkers_remote = \"tcp://0.0.0.0:1\"\n";
  CHECK_THAT(allowed("listen", "websocket", "\"0.0.0.0:8080\""),
             Contains("other addresses need [tls], or plain = true"));
  CHECK(error_of("[listen]\nwebsocket = \"0.0.0.0:8080\"\n" + tls) == "no error");
  CHECK_THAT(error_of("[listen]\nadmin = \"0.0.0.0:9464\"\n" + tls),
             Contains("need [tls] with admin = true, or plain = true"));
  CHECK(error_of("[listen]\nadmin = \"0.0.0.0:9464\"\n" + tls + "admin = true") == "no error");
  CHECK_THAT(error_of(listen + tls), Contains("other addresses need plain = true"));
  CHECK_THAT(error_of("[listen]\nzeromq = \"tcp://0.0.0.0:1\"\n" + tls), Contains("need plain"));
  const std::string protocol = "[[protocol]]\nname = \"openai\"\nlisten = \"0.0.0.0:1\"\n";
  CHECK(error_of(tls + protocol) == "no error");
  CHECK_THAT(error_of(protocol), Contains("need [tls], or plain = true"));
  CHECK(allowed("listen", "websocket", "\"0.0.0.0:8080\"", "plain = true") == "no error");
  CHECK(allowed("listen", "websocket", "\"127.0.0.1:9464\"") ==
        "must differ from admin, which is 127.0.0.1:9464");
  CHECK(allowed("listen", "websocket", "\"127.0.0.1:8080\"", "admin = \"127.0.0.1:8080\"") ==
        "must differ from admin, which is 127.0.0.1:8080");
  CHECK(allowed("listen", "websocket", "\"127.0.0.1:0\"", "admin = \"127.0.0.1:0\"") == "no error");
  CHECK(allowed("listen", "zeromq", "\"127.0.0.1:5555\"") == zeromq);
  CHECK(allowed("listen", "zeromq", "\"ipc:///run/millrace.sock\"") == zeromq);
  CHECK(allowed("listen", "zeromq", "\"tcp://0.0.0.0:5555\"") == loopback);
  CHECK(error_of("[listen]\nzeromq = \"tcp://127.0.0.1:8080\"") ==
        "m.toml:1: key 'listen.websocket': must differ from zeromq, which is 127.0.0.1:8080");
  CHECK(allowed("listen", "admin", "\"example.org:80\"") ==
        "must be an address and a port, like 127.0.0.1:8080");
  CHECK(allowed("listen", "workers", "\"/run/x\"") ==
        "must be unix:PATH, with a path of 1 to 107 bytes");
}

TEST_CASE("TLS needs a certificate and its key") {
  CHECK(error_of("[tls]\ncertificate = \"c\"") ==
        "m.toml:1: key 'tls.key': must be the key of certificate");
  for (const std::string other : {"key = \"k\"", "client_ca = \"k\"", "admin = true"})
    CHECK_THAT(error_of("[tls]\n" + other),
               Contains("'tls.certificate': must be set: the other keys need it"));
  CHECK(error_of("[tls]") == "no error");
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
