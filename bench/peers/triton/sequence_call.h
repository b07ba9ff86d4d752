// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <inference.grpc.pb.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace millrace::bench {

struct Chunk {
  std::uint64_t number = 0;  // the answer's id
  std::int64_t sequence = 0;
  bool first = false;  // of its sequence
  bool last = false;
};

// One ModelStreamInfer: chunks of one or several sequences out, answers in. gRPC takes one message
// at a time, so chunks wait here while one is on its way, without bound.
//
// Confined to the thread that takes tags from `queue` and gives them to take(). It must live until
// over(), and what it is given as long as it.
class SequenceCall {
 public:
  // The number of the chunk that was answered, or what Triton said is wrong.
  using OnAnswer = std::function<void(std::uint64_t number, const std::string& error)>;

  SequenceCall(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
               const OnAnswer& on_answer);

  static void take(void* tag, bool ok);

  void send(const Chunk& chunk);
  // No more chunks come; what waits is sent.
  void finish();
  // The client is gone: its connection too, once it was the last of its channel.
  void vanish() { context_.TryCancel(); }
  bool over() const { return pending_ == 0; }

 private:
  // A tag: what is to be done when gRPC gives it back.
  struct Step {
    SequenceCall* call;
    void (SequenceCall::*done)(bool ok);
  };

  void* pending(Step& step);
  void started(bool ok);
  void written(bool ok);
  void said_all(bool) {}
  void read(bool ok);
  void ended(bool) {}
  void write_next();

  const OnAnswer& on_answer_;
  grpc::ClientContext context_;
  inference::ModelInferRequest request_;
  inference::ModelStreamInferResponse response_;
  grpc::Status status_;
  std::deque<Chunk> waiting_;
  bool writing_ = true;  // what is first is the call itself
  bool finishing_ = false;
  int pending_ = 0;  // tags that gRPC has
  Step written_{this, &SequenceCall::written};
  Step said_all_{this, &SequenceCall::said_all};
  Step read_{this, &SequenceCall::read};
  Step ended_{this, &SequenceCall::ended};
  Step started_{this, &SequenceCall::started};
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<inference::ModelInferRequest,
                                                inference::ModelStreamInferResponse>>
      stream_;
};

}  // namespace millrace::bench
