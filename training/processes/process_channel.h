// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/time.h"
#include "gpu/host/shared_memory.h"

namespace millrace::training {

// A process that calls functions for this one. Texts go over a stream socket, values through memory
// that both processes have.
//
// A text has a head of two numbers u32 of the machine: its bytes, and 1 if the descriptor of new
// shared memory comes with the head. An answer has a head of one number, its bytes. The first
// answer comes without a request, when the process is ready, and is empty.
//
// kill() is thread-safe. All else is confined to one thread at a time.
class ProcessChannel {
 public:
  // `process`: a pidfd.
  ProcessChannel(FileDescriptor socket, FileDescriptor process)
      : socket_(std::move(socket)), process_(std::move(process)) {}

  // Memory for the values of the next call. It loses the values of the call before. Throws
  // std::system_error.
  MutableBytes memory(std::size_t bytes);

  // Sends a request, and waits for the answer. The time of a process that is not ready yet does not
  // count. Nullopt: the process has ended, by itself, or because there was no answer in time.
  std::optional<std::string> call(std::string_view request, Duration longest);
  // How it has ended, as a clause.
  const std::string& end() const { return end_; }
  // Whether it has ended by itself.
  bool has_ended() const;

  // Ends the process at once, with SIGKILL. A call that is under way returns an error.
  void kill() const;

 private:
  // False: the process has ended, or the deadline is over.
  bool send(std::string_view request, Time deadline);
  bool receive(MutableBytes into, Time deadline);
  bool wait(short event, Time deadline) const;
  std::string end_of_process() const;

  FileDescriptor socket_, process_;
  std::optional<SharedMemory> memory_;
  std::string end_;
  bool is_new_ = false;  // the process does not have the memory yet
  bool is_ready_ = false;
};

}  // namespace millrace::training
