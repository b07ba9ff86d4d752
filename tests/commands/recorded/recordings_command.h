// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "commands/console/commands.h"
#include "tests/commands/recorded/recorded_directory.h"
#include "tests/commands/run_command.h"

namespace millrace::recordings {

namespace json = boost::json;
using Kind = Event::Kind;

using Output = test::CommandOutput;

inline Output run(const std::vector<std::string>& arguments) {
  return test::run_command(
      arguments.front() == "chunk" ? add_chunk_command : add_recordings_command, arguments);
}

// The output of `recordings COMMAND DIR ARGUMENTS…`, which must succeed without a note.
inline std::string good(const std::string& command, const RecordedDirectory& directory,
                        std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"recordings", command, directory.path()});
  const Output output = run(arguments);
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  return output.out;
}

// The lines on both outputs of a command that must fail.
inline std::string bad(const std::string& command, const RecordedDirectory& directory,
                       std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"recordings", command, directory.path()});
  const Output output = run(arguments);
  CHECK(output.exit_code == 1);
  return output.out + output.err;
}

inline std::vector<json::value> json_lines(const std::string& text) {
  std::vector<json::value> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) values.push_back(json::parse(line));
  return values;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Stream 1 `call` is whole, over two files. Stream 2 `call` has no end. Both files are sealed.
inline void record_two(RecordedDirectory& to) {
  TestStream one(1, "call"), two(2, "call");
  {
    auto file = to.file();
    one.event({.kind = Kind::open}).frames(6).answer(0, R"({"text":"one"})").slice(file);
    two.event({.kind = Kind::open}).frames(3).slice(file);
    REQUIRE(file.seal());
  }
  auto file = to.file(3);
  one.event({.kind = Kind::flush, .mark = 7}).event({.kind = Kind::gap, .count = 2});
  one.frames(3).event({.kind = Kind::end}).slice(file);
  REQUIRE(file.seal());
}

}  // namespace millrace::recordings
