// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace millrace::bench {

// The options of a benchmark. Only options.cpp includes CLI11, whose classes take seconds to
// compile.
class Options {
 public:
  explicit Options(const char* description);
  ~Options();

  // An option with a value. --help prints the default: `value`, unless it is empty. The elements of
  // a vector have spaces or commas between them. Types: the instantiations in options.cpp.
  template <class T>
  Options& add(const char* name, T& value, const char* help);
  // An option without a value. With "!" before its name, it makes `value` false.
  Options& flag(const char* name, bool& value, const char* help);

  // Ends the process if an argument is wrong, and after --help.
  void parse(int argc, char** argv);
  // For after parse: ends the process with this message if `holds` is false.
  void require(bool holds, const char* message) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::bench
