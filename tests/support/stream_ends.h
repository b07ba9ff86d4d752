// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "streams/ends.h"

namespace millrace::test {

// Keeps the rows that a stream gives.
class CapturedRows : public RowSink {
 public:
  void add(StreamId, ReadyRow row) override { rows.push_back(std::move(row)); }

  std::vector<ReadyRow> rows;
};

// Keeps what a stream tells its client, a line each: "result 0 text", "flushed 7",
// "rejected values 3", "error no_worker", "closed 100 2", "resume".
class CapturedClient : public ClientEnd {
 public:
  void result(StreamResult result) override {
    if (has_no_memory) throw std::bad_alloc();
    said.push_back("result " + std::to_string(result.row.seq) + " " + result.answer.data);
    flags.push_back(result.row.flags);
    ++unwritten;
  }
  bool full() const override { return is_full; }
  void flushed(std::uint64_t mark) override { said.push_back("flushed " + std::to_string(mark)); }
  void rejected(ErrorCode code, std::string_view, std::uint64_t frames) override {
    said.push_back("rejected " + std::string(name_of(code)) + " " + std::to_string(frames));
  }
  void warning(ErrorCode code, std::string_view) override {
    said.push_back("warning " + std::string(name_of(code)));
  }
  void error(ErrorCode code, std::string_view) override {
    said.push_back("error " + std::string(name_of(code)));
  }
  void closed(std::uint64_t frames, std::uint64_t chunks) override {
    said.push_back("closed " + std::to_string(frames) + " " + std::to_string(chunks));
  }
  void resume() override { said.push_back("resume"); }
  void has_room() override { ++had_room; }

  std::vector<std::string> said;
  std::vector<std::uint8_t> flags;  // of the results
  std::size_t had_room = 0;         // how often it was told so
  std::size_t unwritten = 0;        // results
  bool is_full = false;
  bool has_no_memory = false;  // for results
};

}  // namespace millrace::test
