// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "schemas/worker_messages.h"
#include "training/filling/stream_error.h"

namespace millrace::training {

// The refusal of a trainer whose next step needs this stream: code `data`, and the place as a JSON
// object with stream, name, epoch and step.
worker_protocol::Refused refusal_of(const DataError& error);

// The error of a stream whose length is not known, for the first step of the epoch.
DataError error_of(const LengthFailure& failure);

// The rank and the position of a trainer, for the log.
std::string place_text(const worker_protocol::TrainerHello& trainer);

}  // namespace millrace::training
