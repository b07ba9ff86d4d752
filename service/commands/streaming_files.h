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

#include "service/commands/console.h"
#include "service/commands/stream_client.h"

namespace millrace {

// Files, standard input among them, that are streamed at the same time, each of several lanes one
// after the other; one thread serves them all. A file that fails is a line on console.err and exit
// code 1, the others go on. Confined to one thread; `client`, `plan` and `console` outlive it.
class StreamingFiles {
 public:
  StreamingFiles(Client& client, const StreamPlan& plan, Console& console);

  // Behind what the lane has already.
  void add(std::size_t lane, const std::string& path, std::size_t times);
  // Until all of them are over.
  void run();

 private:
  struct Lane {
    std::deque<std::string> paths;       // the first of which is being streamed
    std::unique_ptr<FileStream> stream;  // none between two of them
    Time due = Time::max();
  };

  void go_on(std::size_t lane, Time now);
  bool begin(Lane& lane);
  void fail(const Lane& lane, const std::string& why);
  void await_change();

  Client& client_;
  const StreamPlan& plan_;
  Console& console_;
  std::vector<Lane> lanes_;
  std::map<std::uint64_t, std::size_t> by_stream_;  // lanes of the streams under way
  std::set<std::pair<Time, std::size_t>> due_;      // those of which something is due
  std::optional<std::size_t> reader_;               // the one that reads standard input
  bool has_input_ = false;                          // there is something for it to read
};

}  // namespace millrace
