// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "service/log/log.h"

namespace millrace::test {

// A log that writes to a pipe.
struct Logged {
  FileDescriptor reader, end;
  ThreadStats stats;
  std::unique_ptr<LogWriter> writer;
  std::unique_ptr<Log> log;

  explicit Logged(const LogOptions& options = {}) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader = FileDescriptor(ends[0]);
    end = FileDescriptor(ends[1]);
    writer = std::make_unique<LogWriter>(options, end.get());
    log = std::make_unique<Log>(*writer, stats);
  }

  // Ends the log and its writer, and returns all that they wrote.
  std::string text() {
    log.reset();
    writer.reset();
    end = FileDescriptor();
    std::string all;
    char part[4096];
    for (ssize_t length; (length = ::read(reader.get(), part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(length));
    return all;
  }
};

}  // namespace millrace::test
