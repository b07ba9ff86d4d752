// SPDX-License-Identifier: Apache-2.0
#include "transport/base64/base64.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

std::optional<std::string> decoded(std::string_view text) {
  std::vector<std::byte> memory(2);
  const auto bytes = decode_base64(text, memory);
  return bytes ? std::optional(std::string(text_in(*bytes))) : std::nullopt;
}

std::optional<std::string> decoded_url(std::string_view text) {
  std::vector<std::byte> memory;
  const auto bytes = decode_base64url(text, memory);
  return bytes ? std::optional(std::string(text_in(*bytes))) : std::nullopt;
}

}  // namespace

TEST_CASE("bytes of every length are the same after base64") {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    CHECK(decoded(base64(bytes)) == bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST_CASE("base64 is that of RFC 4648") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64("\xfb\xff\xfe") == "+//+");
}

TEST_CASE("other text is not base64") {
  for (const char* text : {"Z",     "Zg",         "Zg=",          "Zg===", "Z===",     "====",
                           "=",     "Zm=v",       "Zg==Zg==",     " Zm9",  "Zm9 ",     "Zm 9",
                           "Zm9\n", "Zm9v\n",     "\nZm9v\n\n\n", "Zm9-",  "AAAA----", "Zm9_",
                           "Zm9.",  "Zm\xc3\xbc", "   ="}) {
    INFO(text);
    CHECK_FALSE(decoded(text));
  }
}

TEST_CASE("bytes of every length are the same after base64url which has no padding") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(decoded_url(base64url(bytes)) == bytes);
    bytes += static_cast<char>(i * 7);
  }
  CHECK(base64url("f") == "Zg");
  CHECK(base64url("\xfb\xff\xfe") == "-__-");
}

TEST_CASE("one text only is the base64url of some bytes") {
  for (const char* text :
       {"Zg==", "Zg=", "Zh", "Zm9", "+//+", "-__+", "Z", "Zm9vZ", " Zg", "Zg\n", "Zm.v"}) {
    INFO(text);
    CHECK_FALSE(decoded_url(text));
  }
}
