// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_member.h"

#include <catch2/catch.hpp>

using millrace::member_text;

TEST_CASE("a member is found as it was written, whatever precedes it") {
  CHECK(member_text(R"({"data":1.50})", "data") == "1.50");
  CHECK(member_text(R"( { "a" : "data" , "data" : [ 1e2 , {"data":0} ] } )", "data") ==
        R"([ 1e2 , {"data":0} ])");
  CHECK(member_text(R"({"a":{"data":1},"b":[[],"]"],"data":"x\"y,\\"})", "data") == R"("x\"y,\\")");
  CHECK(member_text(R"({"a":null,"data":true,"c":1})", "data") == "true");
}

TEST_CASE("a missing member is empty") {
  CHECK(member_text("{}", "data").empty());
  CHECK(member_text("{ }", "data").empty());
  CHECK(member_text(R"({"date":1,"dat":2,"datum":3})", "data").empty());
  CHECK(member_text(R"({"a":"data"})", "data").empty());
}
