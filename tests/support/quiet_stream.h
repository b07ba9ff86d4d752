// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "streams/stream_input.h"

namespace millrace::test {

// A stream that ignores its input. Must be created with new: releasing it deletes it.
class QuietStream : public StreamInput {
 public:
  virtual ~QuietStream() = default;

  void frames(Bytes, Time) override {}
  void flush(std::optional<std::uint64_t>, Time) override {}
  void reset(Time) override {}
  void gap(std::uint64_t, Time) override {}
  void post(std::string_view, Time) override {}
  void set(std::string_view, Time) override {}
  void acknowledge(std::uint64_t, Time) override {}
  void end(Time) override {}
  void reject(ErrorCode, std::string_view, std::uint64_t, Time) override {}
  void reject_command(ErrorCode, std::string_view, Time) override {}
  void fail(ErrorCode, std::string_view, Time) override {}
  void drain(Time) override {}
  void disconnected(ConnectionEnd, Time) override {}
  std::uint64_t credit() const override { return 0; }
  bool overrun() const override { return false; }
  bool has_ended() const override { return false; }
  void tick(Time) override {}
  void written(std::size_t, Time) override {}
  void release(Time) override { delete this; }
};

}  // namespace millrace::test
