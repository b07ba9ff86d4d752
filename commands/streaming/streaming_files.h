// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/console/console.h"
#include "commands/streaming/stream_client.h"

namespace millrace {

// Streams files, or standard input, in several lanes at the same time; the files of one lane follow
// each other. One thread serves all lanes. If a file fails: one line on console.err and exit code
// 1; the others continue. Confined to one thread. `client`, `plan` and `console` must outlive it.
class StreamingFiles {
 public:
  StreamingFiles(Client& client, const StreamPlan& plan, Console& console);

  // Appends a file, or a channel of a file, to a lane, `times` times.
  void add(std::size_t lane, const FilePart& part, std::size_t times);
  // Returns when all files have been streamed or have failed.
  void run();

 private:
  struct Lane {
    std::deque<FilePart> parts;          // the first one is being streamed
    std::unique_ptr<FileStream> stream;  // null between two files
    Time due = Time::max();              // time of the next advance()
  };

  void advance(std::size_t lane, Time now);
  bool begin(Lane& lane);
  void report_average(const FilePart& part);
  void fail(const Lane& lane, const std::string& why);
  void await_change();

  Client& client_;
  const StreamPlan& plan_;
  Console& console_;
  StreamOutput output_;
  std::vector<Lane> lanes_;
  std::map<std::uint64_t, std::size_t> by_stream_;  // lanes by the number of their stream
  std::set<std::pair<Time, std::size_t>> due_;      // lanes by their due time, if they have one
  std::optional<std::size_t> reader_;               // lane that streams standard input
  std::set<std::string> averaged_;                  // files whose notice is printed
  bool has_input_ = false;                          // standard input is readable
};

}  // namespace millrace
