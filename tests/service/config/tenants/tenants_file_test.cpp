// SPDX-License-Identifier: Apache-2.0
#include "service/config/tenants/tenants_file.h"

#include <catch2/catch.hpp>
#include <string>

using namespace millrace;
using Catch::Contains;

namespace {

const std::string digest(64, 'a');
const std::string token = "tokens = [{ sha256 = \"" + digest + "\" }]\n";

std::string error(const std::string& text) {
  const auto tenants = parse_tenants(text, "t.toml");
  return tenants ? "" : tenants.error();
}

TenantRule only(const std::string& text) {
  const auto tenants = parse_tenants(text, "t.toml");
  REQUIRE(tenants.has_value());
  return tenants->tenants().at(0);
}

}  // namespace

TEST_CASE("a tenant has tokens, pipelines and limits") {
  const TenantRule acme = only(R"([[tenant]]
name = "acme"
tokens = [{ sha256 = ")" + digest +
                               R"(", until = 2027-01-01T01:00:00.5+01:00 }]
pipelines = ["english", "german"]
streams = 200
opens = "20/s"
signal = "200/s"
)");
  CHECK(acme.name == "acme");
  CHECK(acme.tokens.at(0).digest == *from_hex(digest));
  CHECK(acme.tokens.at(0).until ==
        std::chrono::sys_days(std::chrono::year(2027) / 1 / 1).time_since_epoch());
  CHECK(acme.pipelines == std::vector<std::string>{"english", "german"});
  CHECK(acme.streams == 200);
  CHECK(acme.opens == RateRule(20, 40));
  CHECK(acme.signal == RateRule(200, 400));
}

TEST_CASE("the end of a token may be in any year, such as 9999 for never") {
  const auto until = [](const std::string& year) {
    return *only("[[tenant]]\nname = \"acme\"\ntokens = [{ sha256 = \"" + digest +
                 "\", until = " + year + "-12-31T23:59:59Z }]")
                .tokens.at(0)
                .until;
  };
  CHECK(until("9999") == until("2200"));
  CHECK(until("9999") > until("2199"));
  CHECK(until("1600") == until("1700"));
  CHECK(until("1600") < Duration());
}

TEST_CASE("by default a tenant has all pipelines, 1000 streams and no rates") {
  const TenantRule acme = only("[[tenant]]\nname = \"acme\"\n" + token);
  CHECK_FALSE(acme.tokens.at(0).until);
  CHECK_FALSE(acme.pipelines);
  CHECK(acme.streams == 1000);
  CHECK_FALSE(acme.opens.limits());
  CHECK_FALSE(acme.signal.limits());
  CHECK(parse_tenants("", "t.toml")->tenants().empty());
}

TEST_CASE("a slow rate lets one stream open, and its first seconds of signal pass") {
  const TenantRule acme = only("[[tenant]]\nname = \"a\"\nopens = \"0.1/s\"\nsignal = \"1/s\"");
  CHECK(acme.opens == RateRule(0.1, 1));
  CHECK(acme.signal == RateRule(1, 10));
}

TEST_CASE("an error in the file has its line") {
  const std::string acme = "[[tenant]]\nname = \"acme\"\n";
  CHECK_THAT(error("[[tenant]]\nname = \"a b\""), Contains("t.toml:2: key 'tenant.name': must be"));
  CHECK_THAT(error("[[tenant]]\nname = \"" + std::string(65, 'a') + "\""), Contains("1 to 64"));
  CHECK_THAT(error(acme + acme), Contains("t.toml:4: key 'tenant.name': another tenant"));
  CHECK_THAT(error(acme + token + "[[tenant]]\nname = \"b\"\n" + token),
             Contains("key 'tenant.tokens.sha256': the file has this token twice"));
  CHECK_THAT(error(acme + "streams = 0"), Contains("from 1 to 1000000"));
  for (const char* rate : {"20", "\"20\"", "\"/s\"", "\"20/min\"", "\"-1/s\"", "\"0/s\"",
                           "\"nan/s\"", "\"1e9/s\"", "\"20/s \""})
    CHECK_FALSE(error(acme + "opens = " + rate).empty());
  CHECK_THAT(error(acme + "pipelines = [1]"), Contains("must be names of pipelines"));
  CHECK_THAT(error(acme + "pipelines = \"a\""), Contains("must be names of pipelines"));
  for (const char* until : {"\"2027\"", "2027-01-01", "2027-01-01T00:00:00", "1"})
    CHECK_THAT(error(acme + "tokens = [{ sha256 = \"" + digest + "\", until = " + until + " }]"),
               Contains("must be a date and time with its offset"));
  CHECK_THAT(error("tenants = 1"), Contains("did you mean 'tenant'"));
}

TEST_CASE("an error repeats no token that was written by mistake") {
  const std::string acme = "[[tenant]]\nname = \"acme\"\n";
  for (const std::string line :
       {"tokens = [{ sha256 = \"secret\" }]", "tokens = [\"secret\"]", "token = \"secret\"",
        "tokens = [{ token = \"secret\" }]", "secret", "tokens = \"secret\"",
        "tokens = [{ sha256 = \"secret }]"}) {
    CHECK_FALSE(error(acme + line).empty());
    CHECK_THAT(error(acme + line), !Contains("secret"));
  }
}
