// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"
#include "training/processes/process_pool.h"

namespace millrace::training {

// A function that changes whole streams, and is called in the processes of a pool. The request has
// `source`, which is the number of the function, the numbers of a StreamCopy, and the stream's name
// and meta. The arguments are the frames and the companions, and so are the values returned.
class ProcessFunction final : public StreamFunction {
 public:
  // `here` is the function in this process. It gives the numbers of frames, and changes the streams
  // where the pool cannot be used.
  ProcessFunction(std::shared_ptr<const Catalog> catalog, std::shared_ptr<ProcessPool> pool,
                  std::uint32_t source, std::shared_ptr<StreamFunction> here);

  Result<void, ReadError> change(const StreamCopy& stream, Content& content) override;
  std::uint64_t frames(const StreamCopy& stream, std::uint64_t frames) override {
    return here_->frames(stream, frames);
  }
  void stop() override { pool_->stop(); }

 private:
  const std::shared_ptr<const Catalog> catalog_;
  const std::shared_ptr<ProcessPool> pool_;
  const std::uint32_t source_;
  const std::shared_ptr<StreamFunction> here_;
};

}  // namespace millrace::training
