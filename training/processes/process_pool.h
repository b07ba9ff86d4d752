// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "training/contract/catalog.h"
#include "training/processes/process_channel.h"

namespace millrace::training {

// A call of a function in another process.
struct ProcessCall {
  std::string request;       // a JSON object, without the closing brace, with at least one member
  std::vector<Bytes> given;  // the function's arguments
  std::size_t room = 0;      // most bytes of all values that it returns
  DataFault fault{};         // if it fails
  std::string name;          // names the function in errors
};

// Processes that call functions at the same time. Each call has a process of its own for its
// duration. A process that ends is replaced by a new one at the next call.
//
// The request becomes {…,"given":[bytes, …],"room":bytes}: the arguments lie in the shared memory
// one after the other, each at a multiple of 64 bytes, and behind them is the room. The answer is
// {"returned":[bytes, …]} with the values in the room, in the same way, or {"error":text}.
//
// Thread-safe. In a process that was forked from the owner's, it must not be used.
class ProcessPool {
 public:
  using Values = std::vector<std::vector<std::byte>>;
  // Starts process number i. Throws.
  using Start = std::function<ProcessChannel(std::size_t)>;

  // `longest`: a call that takes longer is an error, and its process is ended.
  ProcessPool(std::size_t processes, Duration longest, Start start);
  // As stop().
  ~ProcessPool();

  // Whether this is the process that made it.
  bool is_usable() const;
  // Starts the processes that do not run. Throws the exceptions of Start.
  void start();
  // Ends all processes. Calls return errors, up to the next start(). Does nothing in a forked
  // process.
  void stop();

  // Returns the values of the function. Waits for a process that is free, and for the answer.
  Result<Values, ReadError> call(const ProcessCall& call);

 private:
  struct Process {
    std::optional<ProcessChannel> channel;
    bool busy = false;  // starts, or calls a function
  };
  struct Busy;

  Process* take();
  void start(Process& process);
  void drop(Process& process);
  void give_back(Process& process);
  Result<Values, ReadError> call_in(Process& process, const ProcessCall& call);

  const Duration longest_;
  const Start start_;
  const pid_t owner_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<Process> processes_;
  bool stopped_ = false;
};

}  // namespace millrace::training
