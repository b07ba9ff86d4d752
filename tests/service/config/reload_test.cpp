// SPDX-License-Identifier: Apache-2.0
// Changes of the configuration file that a running service applies or refuses.
#include "service/config/reload.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_directory.h"
#include "transport/access/resume_keys.h"
#include "transport/access/token_list.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

Configuration configuration_of(const std::string& text) {
  const auto configuration = parse_options(text, "m.toml");
  INFO((configuration ? "" : configuration.error()));
  REQUIRE(configuration.has_value());
  return *configuration;
}

// The changed keys, or the error.
std::string change(const std::string& from, const std::string& to) {
  const auto reloaded = compare(configuration_of(from), configuration_of(to));
  if (!reloaded) return reloaded.error();
  std::string keys;
  for (const std::string& key : reloaded->changed) keys += key + " ";
  return keys;
}

std::string cannot(const std::string& key, const std::string& value, const std::string& before) {
  return "m.toml: key '" + key + "' = " + value + ": cannot change from " + before +
         " while the service runs; restart it";
}

}  // namespace

TEST_CASE("the log and five limits can change") {
  CHECK(change("", "") == "");
  CHECK(change("", R"([limits]
connections = 100
slab_bytes = "2GiB"
drain = "20s"
linger = "1s"
notice = "2s"
[gpu]
slab_bytes = "1GiB"
[log]
level = "warning"
format = "json"
)") == "limits.connections limits.slab_bytes limits.drain limits.linger limits.notice log.level "
       "log.format ");
  CHECK(change("[log]\nlevel = \"error\"", "") == "log.level ");
}

TEST_CASE("any other key cannot change, and is named") {
  CHECK(
      change("", "[listen]\nthreads = 77") ==
      cannot("listen.threads", "77", std::to_string(configuration_of("").options.listen.threads)));
  CHECK(change("", "[listen]\nadmin = \"127.0.0.1:1\"\n[log]\nlevel = \"error\"") ==
        cannot("listen.admin", "\"127.0.0.1:1\"", "\"127.0.0.1:9464\""));
  CHECK(change("", "[limits]\nmessage = \"1MiB\"") ==
        cannot("limits.message", "\"1MiB\"", "\"64KiB\""));
  CHECK(change("", "[gpu]\ndevices = [\"cuda:0\"]") ==
        cannot("gpu.devices", "[\"cuda:0\"]", "\"auto\""));
  CHECK(change("", "[[pipeline]]\nchunk = { size = 320 }") ==
        cannot("pipeline.chunk.size", "320", "1600"));
  CHECK(change("[[pipeline]]\nbatch = { row_buckets = [1, 16] }",
               "[[pipeline]]\nbatch = { row_buckets = [2, 16] }") ==
        cannot("pipeline.batch.row_buckets", "2", "1"));
  CHECK(change("", "[[pipeline]]\nrequired = false") ==
        cannot("pipeline.required", "false", "true"));
  CHECK(change("", "[[pipeline]]\nshed_after = \"1s\"") ==
        cannot("pipeline.shed_after", "\"1s\"", "no value"));
  CHECK(change("", "[recording]\nkeep_for = \"1h\"") ==
        cannot("recording.keep_for", "\"1h\"", "\"720h\""));
  const std::string recorded = "[recording]\ndirectory = \"/r\"\n[[pipeline]]\nrecord = ";
  CHECK(change(recorded + "false", recorded + "{ share = 0.5 }") ==
        cannot("pipeline.record", "{answers = false, share = 0.5}", "no value"));
  CHECK(change("[listen]\nworkers_remote = \"tcp://127.0.0.1:1\"", "") ==
        cannot("listen.workers_remote", "no value", "\"tcp://127.0.0.1:1\""));
  CHECK_THAT(change("", "[[pipeline]]\nname = \"a\"\n[[pipeline]]\nname = \"b\""),
             Contains("key 'pipeline' = [{...}, {...}]: cannot change from [{...}]"));
}

TEST_CASE("TLS gets other files, but a listener neither gains nor loses it") {
  const std::string tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
  CHECK(change(tls, "[tls]\ncertificate = \"d\"\nkey = \"l\"\n") == "tls.certificate tls.key ");
  CHECK(change(tls, tls + "client_ca = \"a\"\n") == "tls.client_ca ");
  CHECK_THAT(change(tls, tls + "admin = true\n"), Contains("cannot change"));
  CHECK_THAT(change("", tls), Contains("cannot change"));
  CHECK_THAT(change(tls, ""), Contains("cannot change"));
}

TEST_CASE("the file of the tokens can change, and is read again") {
  CHECK(change("", "[access]\ntokens = \"a\"") == "access.tokens ");
  const TemporaryDirectory folder;
  const std::string path = folder / "m.toml", tokens = folder / "tokens";
  std::ofstream(path) << "[access]\ntokens = \"" << tokens << "\"\n";
  std::ofstream(tokens) << to_hex(digest_of("abc")) << " alice\n";
  const auto running = load_options(path);
  REQUIRE(running.has_value());
  const auto in_use = load_access(*running);
  REQUIRE(in_use.has_value());
  const auto again = [&] { return reload(*running, *in_use); };
  CHECK(again()->changed.empty());
  std::ofstream(tokens) << to_hex(digest_of("new")) << " alice\n";
  CHECK(again()->changed == std::vector<std::string>{"access.tokens"});
  CHECK(again()->access.tokens->accepts("new") == "alice");
  std::ofstream(tokens) << "new alice\n";
  CHECK_THAT(again().error(),
             Contains(path + ": key 'access.tokens' = \"" + tokens + "\": line 1"));
  std::ofstream(path) << "";
  CHECK(again()->changed == std::vector<std::string>{"access.tokens"});
  CHECK(again()->access.tokens == nullptr);
}

TEST_CASE("the file of the resume keys can change, and is read again") {
  const TemporaryDirectory folder;
  const std::string path = folder / "m.toml", keys = folder / "resume_key";
  const std::string first(64, '1'), second(64, '2');
  std::ofstream(path) << "[access]\nresume_key = \"" << keys << "\"\n";
  std::ofstream(keys) << first;
  REQUIRE(::chmod(keys.c_str(), 0600) == 0);
  const auto running = load_options(path);
  REQUIRE(running.has_value());
  const auto in_use = load_access(*running);
  REQUIRE(in_use.has_value());
  CHECK(*in_use->resume_keys == *ResumeKeys::parse(first));
  const auto again = [&] { return reload(*running, *in_use); };
  CHECK(again()->changed.empty());
  std::ofstream(keys) << second << '\n' << first;
  CHECK(again()->changed == std::vector<std::string>{"access.resume_key"});
  CHECK(*again()->access.resume_keys == *ResumeKeys::parse(second + "\n" + first));
  std::ofstream(keys) << "secret";
  CHECK_THAT(again().error(),
             Contains(path + ": key 'access.resume_key' = \"" + keys + "\": line 1"));
}

TEST_CASE("keys without a file remain in a reload, and those of a file that was named do not") {
  const TemporaryDirectory folder;
  const std::string path = folder / "m.toml";
  std::ofstream(path) << "";
  Configuration running = configuration_of("");
  running.file = path;
  const AccessFiles in_use{
      .resume_keys = std::make_shared<const ResumeKeys>(*ResumeKeys::parse(std::string(64, '1')))};
  CHECK(reload(running, in_use)->access.resume_keys == nullptr);
  running.options.access.resume_key = folder / "resume_key";
  const auto reloaded = reload(running, in_use);
  CHECK(reloaded->changed == std::vector<std::string>{"access.resume_key"});
  REQUIRE(reloaded->access.resume_keys);
  CHECK_FALSE(*reloaded->access.resume_keys == *in_use.resume_keys);
}

TEST_CASE("[gpu] slab_bytes follows [limits] slab_bytes unless it is set") {
  const std::string more = "[limits]\nslab_bytes = \"2GiB\"\n";
  CHECK(change("", more) == "limits.slab_bytes gpu.slab_bytes ");
  CHECK(change("", "[gpu]\nslab_bytes = \"1GiB\"") == "");  // the same value
  CHECK(change("", "[gpu]\nslab_bytes = \"3GiB\"") ==
        cannot("gpu.slab_bytes", "\"3GiB\"", "\"1GiB\""));
  CHECK(change("[gpu]\nslab_bytes = \"1GiB\"", more) ==
        cannot("gpu.slab_bytes", "\"2GiB\"", "\"1GiB\""));
}

TEST_CASE("a file that is wrong, incomplete or not there changes nothing, and is named") {
  const TemporaryDirectory folder;
  const std::string path = folder / "m.toml";
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    Configuration running = configuration_of("");
    running.file = path;
    const auto reloaded = reload(running, {});
    return reloaded ? std::string("none") : reloaded.error();
  };
  CHECK(error("[limits]\ndrain = \"20s\"\n") == "none");
  CHECK_THAT(error("[limits]\ndrain = \"20"), Contains(path + ":2: ") && Contains("end-of-file"));
  CHECK_THAT(error("[limits]\ndrain = 20"),
             Contains(path + ":2: key 'limits.drain' = 20: must be"));
  std::filesystem::remove(path);
  CHECK(reload({.options = {}, .file = path}, {}).error() ==
        path + ": cannot be read: No such file or directory");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(reload({.options = {}, .file = path}, {}).error() ==
        path + ": is not a regular file, and cannot be read again");
}
