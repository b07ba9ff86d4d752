// SPDX-License-Identifier: Apache-2.0
#include "service/config/toml/units.h"

#include <catch2/catch.hpp>

#include "service/config/address.h"
#include "service/config/toml/config_value.h"
#include "service/log/printable.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("a time has a unit") {
  CHECK(parse_time("2ms") == 2ms);
  CHECK(parse_time("1.5s") == 1500ms);
  CHECK(parse_time("0s") == 0s);
  CHECK(parse_time("10min") == 10min);
  CHECK(parse_time("1h") == 1h);
  CHECK(parse_time("250us") == 250us);
  for (const char* text : {"", "2", "ms", "2 ms", "-2ms", "2ms ", "1e3s", "1.2.3s", "2m", "infs",
                           "99999999999999h", "0x2s", "."})
    CHECK(parse_time(text) == std::nullopt);
}

TEST_CASE("a size has a unit of powers of two") {
  CHECK(parse_bytes("64MiB") == 67'108'864);
  CHECK(parse_bytes("1B") == 1);
  CHECK(parse_bytes("1.5KiB") == 1536);
  for (const char* text : {"", "64", "64MB", "64M", "-1B", "1e9B", "99999999TiB"})
    CHECK(parse_bytes(text) == std::nullopt);
}

TEST_CASE("times and sizes are printed in the largest unit in which they are whole") {
  CHECK(readable(Duration(100ms)) == "100ms");
  CHECK(readable(Duration(1500ms)) == "1500ms");
  CHECK(readable(Duration(120s)) == "2min");
  CHECK(readable(Duration(0)) == "0s");
  CHECK(readable_bytes(65'536) == "64KiB");
  CHECK(readable_bytes(65'537) == "65537B");
  CHECK(rounded_bytes(65'537) == "64 KiB");
  CHECK(rounded_bytes(10'240'000) == "9.766 MiB");
  CHECK(rounded_bytes(0) == "0 B");
}

TEST_CASE("an address is an IP address or localhost, and a port") {
  CHECK(parse_tcp("127.0.0.1:8080") == TcpAddress{"127.0.0.1", 8080});
  CHECK(parse_tcp("[0:0:0:0:0:0:0:1]:0") == TcpAddress{"::1", 0});
  CHECK(parse_tcp("localhost:1") == TcpAddress{"127.0.0.1", 1});
  for (const char* text :
       {"", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80x",
        "::1:80", "[::1]", "example.org:80", "127.1:80", "[]:80", "[127.0.0.1]:80"})
    CHECK(parse_tcp(text) == std::nullopt);
}

TEST_CASE("listeners on one port conflict if one has every address") {
  const auto meet = [](const char* a, const char* b) {
    return parse_tcp(a)->conflicts_with(*parse_tcp(b));
  };
  CHECK(meet("127.0.0.1:80", "127.0.0.1:80"));
  CHECK(meet("0.0.0.0:80", "127.0.0.1:80"));
  CHECK(meet("127.0.0.1:80", "[::]:80"));
  CHECK(!meet("127.0.0.1:80", "127.0.0.1:81"));
  CHECK(!meet("127.0.0.1:80", "127.0.0.2:80"));
  CHECK(!meet("127.0.0.1:0", "127.0.0.1:0"));
  CHECK(!meet("0.0.0.0:80", "[::1]:80"));
}

TEST_CASE("a value in a message is one short printable line") {
  CHECK(in_quotes("a\nb\"\x01") == R"("a\u000ab\"\u0001")");
  CHECK(in_quotes(std::string(1 << 20, 'x')) == "\"" + std::string(80, 'x') + "...\"");
  CHECK(in_quotes(std::string(79, 'x') + "éé") == "\"" + std::string(79, 'x') + "...\"");
  CHECK(readable(ConfigValue{1, ConfigArray{{1, ConfigTable{}}, {1, true}}}) == "[{...}, true]");
}
