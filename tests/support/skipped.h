// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <iostream>
#include <string>

namespace millrace::test {

// Prints that the current test case was skipped, because Catch has no such outcome.
inline void say_skipped(const std::string& why) {
  std::cout << "skipped: " << Catch::getResultCapture().getCurrentTestName() << ": " << why
            << std::endl;
}

}  // namespace millrace::test
