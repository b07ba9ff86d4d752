// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/gpu/simulated/program.h"
#include "tests/support/temporary_directory.h"

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

TEST_CASE("the environment can make calls fail") {
  Configured program("fail=cudaHostRegister:801;fail=cudaMalloc:2:1");
  CHECK(program.ask("register") == "801");
  CHECK(program.ask("register") == "801");
  CHECK(program.ask("allocate 1") == "2");
  CHECK(program.ask("allocate 1") == "0");
}

TEST_CASE("devices die when a file appears") {
  const TemporaryDirectory directory;
  const auto path = directory / "now";
  Configured program("dead-when=" + path + ":214");
  CHECK(program.ask("allocate 1") == "0");
  std::ofstream(path).put('\n');
  CHECK(program.ask("allocate 1") == "214");
  std::filesystem::remove(path);
  CHECK(program.ask("sync") == "214");
}

TEST_CASE("the environment can make devices die at a copy, and can hold copies") {
  const TemporaryDirectory directory;
  const auto path = directory / "held";
  std::ofstream(path).put('\n');
  Configured program("pauses=0;hold-copies-while=" + path + ";dead-after-copies=1:700");
  REQUIRE(program.ask("allocate 8") == "0");
  CHECK(program.ask("fill one") == "0");
  CHECK(program.ask("idle") == code(cudaErrorNotReady));
  std::filesystem::remove(path);
  CHECK(program.ask("sync") == "0");
  (void)program.ask("fill two");
  CHECK(program.ask("sync") == "700");
}

TEST_CASE("a program's calls are written to a file when it ends") {
  const TemporaryDirectory directory;
  const auto path = directory / "calls";
  Configured program("calls=" + path);
  REQUIRE(program.ask("allocate 1") == "0");
  REQUIRE(program.ask("allocate 1") == "0");
  REQUIRE(program.end() == 0);
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "cudaMalloc 2\n");
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
