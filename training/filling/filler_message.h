// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>

#include "schemas/worker_messages.h"
#include "training/filling/epochs.h"
#include "training/filling/filling_job.h"

namespace millrace::training {

// A message to the first thread of a BatchFiller.
struct FillerMessage {
  enum class Kind : std::uint8_t { given, taken, epoch, stop } kind = Kind::given;
  std::uint32_t buffer = 0;
  worker_protocol::HandedBatch spent{};
  FillingJob* job = nullptr;
  std::uint64_t run = 0;     // in which the epoch was asked for
  std::uint64_t number = 0;  // the epoch
  Epochs::Distributed epoch{};
  std::exception_ptr error{};
};

}  // namespace millrace::training
