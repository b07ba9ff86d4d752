// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "tests/gpu/simulated/program.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// The peer program with this configuration of its simulated devices.
class Configured : public Program {
 public:
  explicit Configured(const std::string& text, const std::string& visible = "0,1,2,3")
      : Program("simulated_peer",
                {"MILLRACE_SIMULATED_CUDA=" + text, "CUDA_VISIBLE_DEVICES=" + visible}) {}
};

std::string code(cudaError_t error) { return std::to_string(error); }

}  // namespace

TEST_CASE("a breach of a rule ends the program with a message that names it") {
  Configured program("");
  REQUIRE(program.ask("allocate 100") == "0");
  CHECK(program.ask("default").empty());
  CHECK(program.end() == -SIGABRT);
  CHECK(program.errors().find("simulated CUDA: cudaMemsetAsync: default_stream") !=
        std::string::npos);
}

TEST_CASE("the environment sets which breaches are tolerated") {
  Configured program("tolerate=default_stream");
  REQUIRE(program.ask("allocate 100") == "0");
  CHECK(program.ask("default") == "0");
  CHECK(program.end() == 0);
}

TEST_CASE("the environment sets the number and the memory of the devices") {
  Configured one("devices=1;memory=8192");
  CHECK(one.ask("devices") == "00 ");
  CHECK(one.ask("allocate 8193") == code(cudaErrorMemoryAllocation));
  CHECK(one.ask("allocate 8192") == "0");
  Configured none("devices=0");
  CHECK(none.ask("allocate 1") == code(cudaErrorNoDevice));
}

TEST_CASE("CUDA_VISIBLE_DEVICES selects and reorders the devices") {
  CHECK(Configured("devices=3", "2,0").ask("devices") == "02 00 ");
  CHECK(Configured("", "GPU-73696d75-6c61-7465-6420-435544410001").ask("devices") == "01 ");
  CHECK(Configured("", "1,7,0").ask("devices") ==
        "01 ");  // a device that does not exist ends the list
}

TEST_CASE("with check-leaks, a program that leaks ends with an error") {
  Configured program("check-leaks");
  REQUIRE(program.ask("allocate 100") == "0");
  CHECK(program.end() == 86);
  CHECK(program.errors().find("device memory of 100 bytes") != std::string::npos);
  CHECK(Configured("check-leaks").end() == 0);
}

TEST_CASE("an invalid setting in the environment is an error") {
  for (const char* text : {"device=1", "devices=x", "fail=cudaMalloc:", "tolerate=all"}) {
    Configured program(text);
    CHECK(program.ask("allocate 1").empty());
    CHECK(program.errors().find("cannot understand") != std::string::npos);
  }
}
