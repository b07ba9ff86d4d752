// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/triton/sequence_call.h"

namespace millrace::bench {

using Clock = std::chrono::steady_clock;

struct LoadShape {
  std::string target;
  std::uint32_t streams = 500;
  std::uint32_t streams_per_call = 1;
  std::uint32_t connections = 0;  // shared by the calls; 0: one for each call
};

// Sequences that send a chunk every 100 ms, evenly spread, independently of the answers: an open
// loop. A chunk's latency starts at its due time.
//
// Confined to one thread. The constructor and replace() throw std::runtime_error without a server.
class SequenceLoad {
 public:
  explicit SequenceLoad(const LoadShape& shape);
  ~SequenceLoad();
  SequenceLoad(const SequenceLoad&) = delete;
  SequenceLoad& operator=(const SequenceLoad&) = delete;

  // Sends the chunks that are due before `until`.
  void pace(Clock::time_point until);
  // Ends the sequences and waits for their answers, at most `timeout`.
  void finish(Clock::duration timeout);

  // Disconnects a sequence, and starts another one at once over a new connection. Returns the time
  // until the first answer to the new one. The others continue. Requires: one call per stream, and
  // one connection per call.
  Clock::duration replace(std::uint32_t stream);

  std::uint64_t sent() const { return latencies_.size(); }
  // Latencies of all chunks from number `from` on; negative: not answered.
  std::vector<Clock::duration> latencies(std::uint64_t from) const;
  std::uint64_t errors() const { return errors_; }
  const std::string& last_error() const { return last_error_; }

 private:
  std::unique_ptr<SequenceCall> open_call(std::shared_ptr<grpc::Channel> channel);
  std::shared_ptr<grpc::Channel> connect();
  Clock::time_point due(std::uint64_t number) const;
  void send(std::uint64_t number, bool last);
  void take_answers(Clock::time_point until);
  void answered(std::uint64_t number, const std::string& error);
  SequenceCall& call_of(std::uint64_t stream) { return *calls_[stream / shape_.streams_per_call]; }

  LoadShape shape_;
  grpc::CompletionQueue queue_;
  SequenceCall::OnAnswer on_answer_;
  std::vector<std::unique_ptr<SequenceCall>> calls_;
  std::vector<std::int64_t> ids_;  // sequence of each stream
  std::int64_t next_id_ = 1;
  Clock::time_point start_;
  std::vector<Clock::duration> latencies_;
  std::uint64_t unanswered_ = 0;
  bool replaced_ = false;
  std::uint64_t errors_ = 0;
  std::string last_error_;
};

}  // namespace millrace::bench
