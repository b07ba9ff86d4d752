// SPDX-License-Identifier: Apache-2.0
#include "load/streams/usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "base/file_descriptor.h"

using namespace millrace;
using namespace millrace::load;

TEST_CASE("memory, descriptors and CPU time of a process are measured") {
  const Usage before = usage_of(::getpid()).value();
  const FileDescriptor one(::open("/dev/null", O_RDONLY)), other(::open("/dev/null", O_RDONLY));
  std::vector<char> memory(64 << 20);
  std::memset(memory.data(), 1, memory.size());
  const Usage after = usage_of(::getpid()).value();
  CHECK(after.bytes >= before.bytes + memory.size() / 2);
  CHECK(after.descriptors == before.descriptors + 2);
  CHECK(after.cpu > before.cpu);
  CHECK(cpu_of_thread(::pthread_self()) > Duration::zero());
  CHECK(cpu_of_us() >= cpu_of_thread(::pthread_self()));
}

TEST_CASE("a process that has ended has no usage") { CHECK_FALSE(usage_of(0x3fffffff)); }
