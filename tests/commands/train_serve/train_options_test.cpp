// SPDX-License-Identifier: Apache-2.0
#include "commands/train_serve/train_options.h"

#include <catch2/catch.hpp>
#include <string>

#include "transport/net/local_path.h"

using namespace millrace;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

constexpr char plan[] = "[plan]\nstreams = \"speech\"\nchunk = { size = \"100ms\" }\nslots = 8\n";

TrainOptions options_of(const std::string& text) {
  const auto options = parse_train_options(text, "train.toml");
  INFO((options ? "" : options.error()));
  REQUIRE(options.has_value());
  return *options;
}

std::string error_of(const std::string& text) {
  const auto options = parse_train_options(text, "train.toml");
  return options ? "no error" : options.error();
}

}  // namespace

TEST_CASE("a server of batches needs only a plan, and listens for trainers on a Unix socket only") {
  const TrainOptions options = options_of(plan);
  CHECK("unix:" + options.workers == default_trainers_url());
  CHECK_FALSE(options.workers_remote);
  CHECK(readable(options.admin) == "127.0.0.1:9465");
  CHECK(options.plan.keys.plan.slots == 8);
  CHECK(options.plan.keys.streams.at(0).path == "speech");
  CHECK_FALSE(options.plan.epochs);
}

TEST_CASE("addresses, the limit and the number of epochs can be set") {
  const TrainOptions options = options_of(
      "[listen]\nworkers = \"unix:/run/t.sock\"\nworkers_remote = \"off\"\n"
      "admin = \"127.0.0.1:1\"\n[limits]\nslab_bytes = \"2MiB\"\n" +
      std::string(plan) + "epochs = 3\n");
  CHECK(options.workers == "/run/t.sock");
  CHECK_FALSE(options.workers_remote);
  CHECK(options.slab_bytes == 2 << 20);
  CHECK(options.plan.epochs == 3);
}

TEST_CASE("an address off loopback needs plain") {
  const std::string listen = "[listen]\nworkers_remote = \"tcp://0.0.0.0:5556\"\n";
  CHECK_THAT(error_of(listen + plan), Contains("train.toml:2:") && Contains("plain = true"));
  CHECK(options_of(listen + "plain = true\n" + plan).workers_remote);
}

TEST_CASE("a server without an address for trainers is an error") {
  CHECK_THAT(error_of("[listen]\nworkers = \"off\"\n" + std::string(plan)),
             Contains("no trainer can attach"));
}

TEST_CASE("two listeners cannot have one address") {
  const std::string both =
      "[listen]\nworkers_remote = \"tcp://127.0.0.1:5556\"\nadmin = \"127.0.0.1:5556\"\n";
  CHECK_THAT(error_of(both + plan), Contains("must differ from"));
}

TEST_CASE("streams are a path, a list, or tables with a frequency") {
  const std::string rest = "chunk = { size = 4 }\nslots = 8\n";
  const auto streams = [&](const std::string& text) { return options_of(text).plan.keys.streams; };
  CHECK(streams("[plan]\n" + rest + "streams = [\"a\", [\"b\", 0.25]]\n") ==
        streams("[plan]\n" + rest +
                "[[plan.streams]]\npath = \"a\"\n[[plan.streams]]\npath = \"b\"\n"
                "frequency = 0.25\n"));
  CHECK_THAT(error_of("[plan]\n" + rest + "[[plan.streams]]\npath = \"a\"\nshare = 1\n"),
             Contains("train.toml:6:") && Contains("unknown key 'share'"));
  CHECK_THAT(error_of("[plan]\n" + rest + "[[plan.streams]]\nfrequency = 1\n"),
             Contains("needs a path"));
}

TEST_CASE("an unknown key is an error with its file and line") {
  CHECK_THAT(error_of(std::string(plan) + "slotz = 3\n"),
             Contains("train.toml:5:") && Contains("slotz is an unknown key"));
  CHECK_THAT(error_of("[listen]\nport = 3\n" + std::string(plan)),
             Contains("train.toml:2:") && Contains("port"));
  CHECK_THAT(error_of("[pipeline]\n" + std::string(plan)), Contains("pipeline"));
  CHECK_THAT(error_of("[plan\n"), Contains("train.toml:1:"));
  CHECK_THAT(error_of("[log]\n"), Contains("[plan]"));
}

TEST_CASE("the keys of a trainer are errors in the configuration of its server") {
  for (const char* key : {"rank", "world", "prefetch", "buffers"})
    CHECK_THAT(error_of(std::string(plan) + key + " = 1\n"),
               Equals("train.toml:5: key 'plan." + std::string(key) +
                      "' is chosen by each trainer, not by the server"));
}

TEST_CASE("a number of epochs below 1 is an error") {
  CHECK_THAT(error_of(std::string(plan) + "epochs = 0\n"), Contains("1 or more"));
  CHECK_THAT(error_of(std::string(plan) + "epochs = \"2\"\n"), Contains("1 or more"));
}

TEST_CASE("a file that cannot be read is an error with its path") {
  CHECK_THAT(load_train_options("/nowhere/train.toml").error(),
             Contains("/nowhere/train.toml: cannot be read"));
  CHECK_THAT(load_train_options("/").error(), Contains("is a directory"));
}
