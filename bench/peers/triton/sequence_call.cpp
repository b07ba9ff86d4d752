// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/triton/sequence_call.h"

#include <random>

namespace millrace::bench {

namespace {

constexpr std::int64_t samples = 1600;  // 100 ms

std::string noise() {
  std::mt19937 random(1);
  std::string bytes(samples * 2, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

SequenceCall::SequenceCall(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
                           const OnAnswer& on_answer)
    : on_answer_(on_answer), stub_(inference::GRPCInferenceService::NewStub(std::move(channel))) {
  request_.set_model_name("chunks");
  auto& input = *request_.add_inputs();
  input.set_name("INPUT");
  input.set_datatype("INT16");
  input.add_shape(1);
  input.add_shape(samples);
  request_.add_raw_input_contents(noise());
  stream_ = stub_->AsyncModelStreamInfer(&context_, &queue, pending(started_));
}

void SequenceCall::process(void* tag, bool ok) {
  auto& step = *static_cast<Step*>(tag);
  --step.call->pending_;
  (step.call->*step.done)(ok);
}

void* SequenceCall::pending(Step& step) {
  ++pending_;
  return &step;
}

void SequenceCall::send(const Chunk& chunk) {
  waiting_.push_back(chunk);
  if (!writing_) write_next();
}

void SequenceCall::finish() {
  finishing_ = true;
  if (!writing_) write_next();
}

void SequenceCall::write_next() {
  writing_ = true;
  if (waiting_.empty()) {
    if (finishing_) return stream_->WritesDone(pending(writes_done_));
    writing_ = false;
    return;
  }
  const Chunk chunk = waiting_.front();
  waiting_.pop_front();
  request_.set_id(std::to_string(chunk.number));
  auto& parameters = *request_.mutable_parameters();
  parameters["sequence_id"].set_int64_param(chunk.sequence);
  parameters["sequence_start"].set_bool_param(chunk.first);
  parameters["sequence_end"].set_bool_param(chunk.last);
  stream_->Write(request_, pending(written_));
}

void SequenceCall::started(bool ok) {
  if (!ok) return stream_->Finish(&status_, pending(ended_));
  stream_->Read(&response_, pending(read_));
  write_next();
}

void SequenceCall::written(bool ok) {
  if (ok) write_next();
}

void SequenceCall::read(bool ok) {
  if (!ok) return stream_->Finish(&status_, pending(ended_));
  const std::string& id = response_.infer_response().id();
  on_answer_(id.empty() ? 0 : std::stoull(id), response_.error_message());
  stream_->Read(&response_, pending(read_));
}

}  // namespace millrace::bench
