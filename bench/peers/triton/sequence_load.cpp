// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/triton/sequence_load.h"

#include <algorithm>
#include <stdexcept>

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;

constexpr Clock::duration period = 100ms;
constexpr Clock::duration never = -1ns;
// The number of the first chunk after replace().
constexpr std::uint64_t replacement = ~std::uint64_t{0};

gpr_timespec deadline(Clock::duration from_now) {
  const auto wait = std::chrono::ceil<std::chrono::microseconds>(std::max(from_now, 0ns));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(wait.count(), GPR_TIMESPAN));
}

}  // namespace

SequenceLoad::SequenceLoad(const LoadShape& shape)
    : shape_(shape), on_answer_([this](auto number, auto& error) { answered(number, error); }) {
  const std::uint32_t calls = (shape.streams + shape.streams_per_call - 1) / shape.streams_per_call;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const std::uint32_t connections = shape.connections == 0 ? calls : shape.connections;
  for (std::uint32_t i = 0; i < std::min(connections, calls); ++i) channels.push_back(connect());
  for (std::uint32_t i = 0; i < calls; ++i) {
    calls_.push_back(open_call(channels[i % channels.size()]));
  }
  for (std::uint32_t i = 0; i < shape.streams; ++i) ids_.push_back(next_id_++);
  start_ = Clock::now() + 100ms;
}

SequenceLoad::~SequenceLoad() {
  for (auto& call : calls_) call->disconnect();
  const auto over = [](const auto& call) { return call->over(); };
  const Clock::time_point end = Clock::now() + 5s;
  while (!std::ranges::all_of(calls_, over) && Clock::now() < end) take_answers(Clock::now() + 1ms);
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void SequenceLoad::pace(Clock::time_point until) {
  for (;;) {
    const Clock::time_point next = due(sent());
    if (next >= until) return take_answers(until);
    take_answers(next);
    send(sent(), false);
  }
}

void SequenceLoad::finish(Clock::duration timeout) {
  for (std::uint32_t i = 0; i < shape_.streams; ++i) {
    take_answers(due(sent()));
    send(sent(), true);
  }
  for (auto& call : calls_) call->finish();
  const Clock::time_point end = Clock::now() + timeout;
  while (unanswered_ > 0 && Clock::now() < end) take_answers(std::min(Clock::now() + 10ms, end));
}

Clock::duration SequenceLoad::replace(std::uint32_t stream) {
  auto another = open_call(connect());
  auto old_call = std::exchange(calls_[stream], std::move(another));
  const Clock::time_point start = Clock::now();
  old_call->disconnect();
  while (!old_call->over()) take_answers(Clock::now() + 1ms);
  old_call.reset();  // closes its connection
  ids_[stream] = next_id_++;
  replaced_ = false;
  calls_[stream]->send({replacement, ids_[stream], true, false});
  while (!replaced_) pace(Clock::now() + 1ms);
  return Clock::now() - start;
}

std::vector<Clock::duration> SequenceLoad::latencies(std::uint64_t from) const {
  return {latencies_.begin() + static_cast<std::ptrdiff_t>(from), latencies_.end()};
}

std::unique_ptr<SequenceCall> SequenceLoad::open_call(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<SequenceCall>(std::move(channel), queue_, on_answer_);
}

std::shared_ptr<grpc::Channel> SequenceLoad::connect() {
  grpc::ChannelArguments arguments;
  // Otherwise all channels share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel =
      grpc::CreateCustomChannel(shape_.target, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(deadline(10s))) {
    throw std::runtime_error("no server listens at " + shape_.target);
  }
  return channel;
}

Clock::time_point SequenceLoad::due(std::uint64_t number) const {
  return start_ + period * number / shape_.streams;
}

void SequenceLoad::send(std::uint64_t number, bool last) {
  const std::uint64_t stream = number % shape_.streams;
  latencies_.push_back(never);
  ++unanswered_;
  call_of(stream).send({number, ids_[stream], number < shape_.streams, last});
}

// gRPC's timers have a resolution of 1 ms: chunks that fall due within it are sent together. Even
// if the load is late, at least two tags are processed for each sent chunk: those that it causes.
void SequenceLoad::take_answers(Clock::time_point until) {
  void* tag = nullptr;
  bool ok = false;
  for (int taken = 0;;) {
    const Clock::duration left = until - Clock::now();
    if (left <= 0ns && taken >= 2) return;
    if (queue_.AsyncNext(&tag, &ok, deadline(left)) == grpc::CompletionQueue::GOT_EVENT) {
      SequenceCall::process(tag, ok);
      ++taken;
    } else if (left <= 0ns) {
      return;
    }
  }
}

void SequenceLoad::answered(std::uint64_t number, const std::string& error) {
  if (!error.empty()) {
    ++errors_;
    last_error_ = error;
    return;
  }
  if (number == replacement) {
    replaced_ = true;
    return;
  }
  if (latencies_[number] != never) throw std::logic_error("a chunk was answered twice");
  latencies_[number] = Clock::now() - due(number);
  --unanswered_;
}

}  // namespace millrace::bench
