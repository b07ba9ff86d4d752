// SPDX-License-Identifier: Apache-2.0
#include "monitoring/open_files.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("open descriptors are counted right, by the kernel or one by one") {
  const std::size_t before = count_open_files();
  CHECK(open_files() == before);
  const int first = ::dup(0), second = ::dup(0);
  ::close(first);  // a hole below the last one
  CHECK(open_files() == before + 1);
  CHECK(count_open_files() == before + 1);
  ::close(second);
}
