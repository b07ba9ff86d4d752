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
  std::uint64_t number = 0;  // also the id of its answer
  std::int64_t sequence = 0;
  bool first = false;  // chunk of its sequence
  bool last = false;
};

// One call of ModelStreamInfer: sends the chunks of one or several sequences, and receives the
// answers. gRPC accepts one message at a time; further chunks wait here, in an unbounded queue.
//
// Confined to the thread that passes the tags of `queue` to process(). Must not be destroyed before
// over(). `queue` and `on_answer` must outlive it.
class SequenceCall {
 public:
  // Called with the number of the answered chunk, or with an error of Triton.
  using OnAnswer = std::function<void(std::uint64_t number, const std::string& error)>;

  SequenceCall(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
               const OnAnswer& on_answer);

  static void process(void* tag, bool ok);

  void send(const Chunk& chunk);
  // Sends the waiting chunks, and then ends the call's input.
  void finish();
  // Cancels the call. The connection closes with the last call of its channel.
  void disconnect() { context_.TryCancel(); }
  bool over() const { return pending_ == 0; }

 private:
  // A tag: the member to call when gRPC returns it.
  struct Step {
    SequenceCall* call;
    void (SequenceCall::*done)(bool ok);
  };

  void* pending(Step& step);
  void started(bool ok);
  void written(bool ok);
  void writes_done(bool) {}
  void read(bool ok);
  void ended(bool) {}
  void write_next();

  const OnAnswer& on_answer_;
  grpc::ClientContext context_;
  inference::ModelInferRequest request_;
  inference::ModelStreamInferResponse response_;
  grpc::Status status_;
  std::deque<Chunk> waiting_;
  bool writing_ = true;  // true at first: the call starts
  bool finishing_ = false;
  int pending_ = 0;  // tags that gRPC has not returned
  Step written_{this, &SequenceCall::written};
  Step writes_done_{this, &SequenceCall::writes_done};
  Step read_{this, &SequenceCall::read};
  Step ended_{this, &SequenceCall::ended};
  Step started_{this, &SequenceCall::started};
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<inference::ModelInferRequest,
                                                inference::ModelStreamInferResponse>>
      stream_;
};

}  // namespace millrace::bench
