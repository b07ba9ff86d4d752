// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <iostream>
#include <string>

namespace millrace::test {

// A case that cannot be run here says so: Catch knows no third outcome.
inline void say_skipped(const std::string& why) {
  std::cout << "skipped: " << Catch::getResultCapture().getCurrentTestName() << ": " << why
            << std::endl;
}

}  // namespace millrace::test
