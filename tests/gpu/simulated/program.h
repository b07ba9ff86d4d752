// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace millrace::test {

// A program in the folder of the test, which answers each line of its input with a line.
class Program {
 public:
  // `environment` is added to that of the test: NAME=VALUE.
  explicit Program(const std::string& name, const std::vector<std::string>& environment = {},
                   const std::vector<std::string>& arguments = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sends a line and returns the answer; empty if the program has ended.
  std::string ask(const std::string& line);
  void kill();
  // Closes the program's input and waits for its end. Returns the exit status, or the negative
  // number of the signal. Call it once.
  int end();

 private:
  pid_t process_ = -1;
  int input_ = -1, output_ = -1;
};

}  // namespace millrace::test
