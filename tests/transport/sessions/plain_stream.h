// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "streams/stream.h"
#include "tests/support/stream_ends.h"
#include "transport/sessions/stream_admission.h"

namespace millrace::test {

// A stream between a client's `output` and a lane that is the test.
struct PlainStream {
  PlainStream(const Spec& spec, std::uint64_t limit, ClientOutput& to,
              const ClientFormat& format = {}, const FrameType& type = {})
      : output(to),
        pool(FrameBuffer::block_bytes(type.bytes(), spec.width()), 100, stats.buffer),
        stream({.type = type, .format = format, .chunk = {.spec = spec}, .frames_limit = limit},
               {.host = lane, .blocks = pool, .stats = stats, .chosen_size = chosen_size}, to) {}

  bool full() const { return stream.connected() && output.full(); }

  ClientOutput& output;
  StreamStats stats;
  std::uint32_t chosen_size = 0;
  CapturedRows lane;
  std::size_t taken = 0, answered = 0;  // rows
  BlockPool pool;
  Stream stream;
};

// Gives each client a stream of this rule, with a bound on its frames.
class PlainAdmission final : public StreamAdmission {
 public:
  PlainAdmission(const Spec& spec, std::uint64_t limit, const ClientFormat& format = {},
                 const FrameType& type = {})
      : spec_(spec), limit_(limit), format_(format), type_(type) {}
  Result<StreamHandle, RequestError> open(StreamRequest request, const ClientIdentity&,
                                          ClientOutput& output) override {
    streams.push_back(std::make_unique<PlainStream>(spec_, limit_, output, format_, type_));
    output.ready({.stream = "s",
                  .pipeline = request.pipeline,
                  .frame_bytes = size_of(format_.format) * format_.values});
    return StreamHandle(&streams.back()->stream);
  }

  std::vector<std::unique_ptr<PlainStream>> streams;  // in the order of their opening

 private:
  const Spec spec_;
  const std::uint64_t limit_;
  const ClientFormat format_;
  const FrameType type_;
};

}  // namespace millrace::test
