// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "base/time.h"
#include "bench/packets.h"
#include "workers/worker.h"

namespace millrace::bench {

// The worker of the benchmark, on a thread of its own: takes batches until the service ends,
// stamps and checks every row by its content, and answers none. Confined to one thread but for
// that.
class RowCheck {
 public:
  struct SeenRow {
    Time due, sent, taken;
  };
  struct SeenBatch {
    Trigger trigger{};
    std::uint32_t rows = 0;
    Time due, sent;  // of its row that was sent first
    Time closed;
  };
  struct Seen {
    std::vector<SeenRow> rows;
    std::vector<SeenBatch> batches;       // that have rows
    std::vector<std::uint32_t> expected;  // by stream: the packet that comes next
    std::uint64_t skipped = 0;            // packets that did not come before a later one
    std::uint64_t repeated = 0;           // or came behind a later one
    std::uint64_t damaged = 0;
  };

  // Attached when it returns. `packets` outlives it. Throws WorkerError.
  RowCheck(const std::string& url, const Packets& packets, std::uint32_t streams);
  ~RowCheck() { worker_.interrupt(); }  // for an end without finish()

  // Waits until the service has ended the worker. Throws WorkerError if that was not as agreed.
  Seen finish();

 private:
  void run();
  void check(const WorkerBatch& batch);
  void check(const PacketHead& head, Time taken);

  const Packets& packets_;
  Worker worker_;
  Seen seen_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace millrace::bench
